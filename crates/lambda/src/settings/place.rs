//! Where the store is, and where dead letters go, as a user says it.

use std::str::FromStr;

use millpond_dynamodb::TableName;

/// Where a function's store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// A DynamoDB table.
    DynamoDb(TableName),
}

impl FromStr for StorePlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "it should be dynamodb:TABLE";
        match text.split_once(':') {
            Some(("dynamodb", table)) => {
                let table = TableName::new(table.trim_start_matches("//"));
                table.map(Self::DynamoDb).map_err(|error| format!("{form}; {error}"))
            }
            Some(("file", _)) | None => {
                Err(format!("a function's disk is gone with its process; {form}"))
            }
            Some(_) => Err(form.into()),
        }
    }
}

/// Where dead letters go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkPlace {
    /// A client of a Millpond queue in the function's store. The main client's name is empty.
    Queue {
        /// The queue.
        queue: String,
        /// The client.
        client: String,
    },
    /// A topic of the Millpond log in the function's store.
    Log {
        /// The topic.
        topic: String,
    },
    /// A Kinesis stream.
    Kinesis {
        /// Its name or ARN.
        stream: String,
    },
    /// An SQS queue.
    Sqs {
        /// Its URL.
        url: String,
    },
}

impl FromStr for SinkPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let forms =
            "it should be queue:NAME, queue:NAME/CLIENT, log:TOPIC, kinesis:STREAM or sqs:URL";
        let (kind, name) = text.split_once(':').ok_or(forms)?;
        if name.is_empty() {
            return Err(format!("it names nothing after the colon; {forms}"));
        }
        let owned = str::to_owned;
        match kind {
            "queue" => {
                let (queue, client) = name.split_once('/').unwrap_or((name, ""));
                if queue.is_empty() {
                    return Err(format!("the queue has no name; {forms}"));
                }
                Ok(Self::Queue { queue: owned(queue), client: owned(client) })
            }
            "log" => Ok(Self::Log { topic: owned(name) }),
            "kinesis" => Ok(Self::Kinesis { stream: owned(name) }),
            "sqs" if name.starts_with("https://") || name.starts_with("http://") => {
                Ok(Self::Sqs { url: owned(name) })
            }
            "sqs" => Err("after sqs: comes the queue's URL, which begins with https://".into()),
            _ => Err(forms.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_tables() {
        let table = StorePlace::DynamoDb(TableName::new("things").unwrap());
        assert_eq!("dynamodb:things".parse(), Ok(table.clone()));
        assert_eq!("dynamodb://things".parse(), Ok(table));
        for (bad, said) in [
            ("dynamodb:", "dynamodb:TABLE"),
            ("dynamodb:a b", "table name"),
            ("./data", "gone with its process"),
            ("file:data", "gone with its process"),
            ("redis:x", "dynamodb:TABLE"),
        ] {
            let error = bad.parse::<StorePlace>().unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }

    #[test]
    fn letters_go_to_five_kinds_of_places() {
        let queue = |queue: &str, client: &str| SinkPlace::Queue {
            queue: queue.into(),
            client: client.into(),
        };
        assert_eq!("queue:dead".parse(), Ok(queue("dead", "")));
        assert_eq!("queue:dead/shop/7".parse(), Ok(queue("dead", "shop/7")));
        assert_eq!("log:dead".parse(), Ok(SinkPlace::Log { topic: "dead".into() }));
        let stream = "arn:aws:kinesis:eu-central-1:1:stream/dead".to_owned();
        assert_eq!(format!("kinesis:{stream}").parse(), Ok(SinkPlace::Kinesis { stream }));
        let url = "https://sqs.eu-central-1.amazonaws.com/1/dead.fifo".to_owned();
        assert_eq!(format!("sqs:{url}").parse(), Ok(SinkPlace::Sqs { url }));
        for bad in ["", "dead", "queue:", "queue:/x", "sqs:dead", "s3:x", "log:"] {
            assert!(bad.parse::<SinkPlace>().is_err(), "{bad:?} was taken");
        }
    }
}
