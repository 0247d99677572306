//! Stopping, and starting again, exactly the event source mapping that is meant.

use async_trait::async_trait;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::types::EventSourceMappingConfiguration;
use millpond_consumer::source::Scope;
use millpond_consumer::{Breaker, BreakerError};

use crate::aws::Aws;
use crate::current;
use crate::failure::{AwsError, Request};
use crate::limits::{AWS_BACKOFF, MAPPING_BACKOFF, MAPPINGS_PAGE, MAPPINGS_PAGES_MAX};

/// An event source mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its id.
    pub uuid: String,
    /// The source's full ARN: of a DynamoDB table, that of its stream.
    pub source: String,
    /// The function's full ARN, with alias or version where the mapping has one.
    pub function: String,
    /// What the service says of it: `Enabled`, `Disabling`, `Disabled` …
    pub state: String,
}

impl Mapping {
    fn of(found: &EventSourceMappingConfiguration) -> Option<Self> {
        Some(Self {
            uuid: found.uuid()?.to_owned(),
            source: found.event_source_arn()?.to_owned(),
            function: found.function_arn()?.to_owned(),
            state: found.state().unwrap_or_default().to_owned(),
        })
    }
}

/// Finds, disables and enables event source mappings. Needs `lambda:ListEventSourceMappings` (or `lambda:GetEventSourceMapping`, by
/// id) and `lambda:UpdateEventSourceMapping`.
#[derive(Debug, Clone)]
pub struct Mappings {
    client: Client,
    aws: Aws,
}

impl Mappings {
    /// The mappings of this account and region.
    #[must_use]
    pub fn new(aws: &Aws) -> Self {
        Self { client: aws.lambda(), aws: aws.clone() }
    }

    /// The mappings of exactly this source to exactly this function, all pages looked through. Both are full ARNs: a
    /// stream of the same name in another account or region is another, and so is a function's other alias.
    ///
    /// # Errors
    /// When the service cannot be asked.
    pub async fn find(&self, function: &str, source: &str) -> Result<Vec<Mapping>, AwsError> {
        let mut found = Vec::new();
        let mut marker: Option<String> = None;
        for _ in 0..MAPPINGS_PAGES_MAX {
            let request = Request { action: "lambda:ListEventSourceMappings", what: function };
            let page = request.lasting(self.aws.environment(), AWS_BACKOFF, || async {
                self.client
                    .list_event_source_mappings()
                    .function_name(function)
                    .event_source_arn(source)
                    .max_items(MAPPINGS_PAGE)
                    .set_marker(marker.clone())
                    .send()
                    .await
                    .map_err(|error| request.error(&error))
            });
            let page = page.await?;
            // The service has filtered already, by what it takes the names for; here they are compared to the letter.
            let mappings = page.event_source_mappings().iter().filter_map(Mapping::of);
            found.extend(mappings.filter(|one| one.source == source && one.function == function));
            match page.next_marker().filter(|next| !next.is_empty()) {
                Some(next) if marker.as_deref() != Some(next) => marker = Some(next.to_owned()),
                _ => break,
            }
        }
        Ok(found)
    }

    /// The mapping with this id.
    ///
    /// # Errors
    /// When the service cannot be asked, or there is none.
    pub async fn get(&self, uuid: &str) -> Result<Mapping, AwsError> {
        let request = Request { action: "lambda:GetEventSourceMapping", what: uuid };
        let found = request.lasting(self.aws.environment(), AWS_BACKOFF, || async {
            let get = self.client.get_event_source_mapping().uuid(uuid);
            get.send().await.map_err(|error| request.error(&error))
        });
        let found = found.await?;
        let part = |part: Option<&str>| part.unwrap_or_default().to_owned();
        Ok(Mapping {
            uuid: uuid.to_owned(),
            source: part(found.event_source_arn()),
            function: part(found.function_arn()),
            state: part(found.state()),
        })
    }

    /// Stops delivery through a mapping. It is over within a minute; batches under way are finished.
    ///
    /// # Errors
    /// When the service cannot be asked, or refuses.
    pub async fn disable(&self, mapping: &Mapping) -> Result<(), AwsError> {
        if ["Disabled", "Disabling"].contains(&mapping.state.as_str()) {
            return Ok(());
        }
        self.switch(mapping, false).await
    }

    /// Starts delivery through a mapping again, from where it stopped.
    ///
    /// # Errors
    /// When the service cannot be asked, or refuses.
    pub async fn enable(&self, mapping: &Mapping) -> Result<(), AwsError> {
        if ["Enabled", "Enabling"].contains(&mapping.state.as_str()) {
            return Ok(());
        }
        self.switch(mapping, true).await
    }

    async fn switch(&self, mapping: &Mapping, enabled: bool) -> Result<(), AwsError> {
        let request =
            Request { action: "lambda:UpdateEventSourceMapping", what: mapping.uuid.as_str() };
        // While another change of it is under way, the service says that it is in use: that passes.
        let switched = request.lasting(self.aws.environment(), MAPPING_BACKOFF, || async {
            self.client
                .update_event_source_mapping()
                .uuid(&mapping.uuid)
                .enabled(enabled)
                .send()
                .await
                .map_err(|error| request.error(&error))
        });
        switched.await.map(|_| ())
    }
}

/// Disables the event source mapping through which its function was invoked. When the set-up is mended, enable it with
/// `millpond consumer enable`, or [`Mappings::enable`].
#[derive(Debug, Clone)]
pub struct MappingBreaker {
    mappings: Mappings,
    function: Option<String>,
}

impl MappingBreaker {
    /// For the function that this process is, as it was invoked: known once an invocation has begun.
    #[must_use]
    pub fn new(aws: &Aws) -> Self {
        Self { mappings: Mappings::new(aws), function: None }
    }

    /// For the function with this ARN.
    #[must_use]
    pub fn of(aws: &Aws, function: impl Into<String>) -> Self {
        Self { mappings: Mappings::new(aws), function: Some(function.into()) }
    }
}

#[async_trait]
impl Breaker for MappingBreaker {
    async fn trip(&self, source: &Scope, reason: &str) -> Result<String, BreakerError> {
        let function = self.function.clone().or_else(current::invoked).ok_or_else(|| {
            BreakerError::Unavailable("the function's own ARN is not known".into())
        })?;
        let found = self.mappings.find(&function, &source.arn).await?;
        if found.is_empty() {
            return Err(BreakerError::NotFound { arn: source.arn.clone() });
        }
        let mut stopped = Vec::new();
        for mapping in &found {
            self.mappings.disable(mapping).await?;
            tracing::error!(
                mapping = mapping.uuid,
                source = source.arn,
                function,
                reason,
                "an event source mapping was disabled"
            );
            stopped.push(mapping.uuid.as_str());
        }
        Ok(stopped.join(", "))
    }
}
