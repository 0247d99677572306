//! What all functions have: a store, perhaps an object store, AWS, and settings.

use std::sync::Arc;

use millpond_consumer::limits::{ATTEMPTS_MAX, CONCURRENCY_MAX, TIMEOUT_SHARE_RANGE};
use millpond_consumer::sink::{Letter, Sink, SinkError, SinkReceipt};
use millpond_consumer::{Builder, Consumer, Order, Responses, Spill, StoreState};
use millpond_dynamodb::{DynamoDbConfig, DynamoDbStore, ObjectOptions, Objects};
use millpond_lanes::Ground;
use millpond_queue::{Queue, QueueConfig, QueueError, Queues};
use millpond_sequencer::{Config, Sequencer};
use millpond_store::{Environment, Store};

use crate::aws::Aws;
use crate::breaker::MappingBreaker;
use crate::error::FunctionError;
use crate::settings::{SettingError, SinkPlace, StorePlace, Variables};
use crate::sink::{KinesisSink, Part, SqsSink, StoredSink};

/// What a function has once its settings are read. Nothing was asked of the store or of AWS yet, so that what is wrong
/// with them shows where it can be handled: in an invocation.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The settings.
    pub variables: Variables,
    /// Time and chance.
    pub environment: Environment,
    /// The store, and the object store for large payload.
    pub ground: Ground,
    /// The way to AWS.
    pub aws: Aws,
    spill: Option<Spill>,
}

impl Prepared {
    /// Reads the settings that all functions have.
    ///
    /// # Errors
    /// What is missing or makes no sense, by the variable's name.
    pub async fn from(variables: &Variables) -> Result<Self, FunctionError> {
        let environment = Environment::system();
        let remedy = "name the table, as in dynamodb:millpond";
        let StorePlace::DynamoDb(table) = variables
            .parsed("MILLPOND_STORE")?
            .ok_or(SettingError::Missing { variable: "MILLPOND_STORE", remedy })?;
        let config = DynamoDbConfig::new(table.as_str())?;
        let store: Arc<dyn Store> = Arc::new(DynamoDbStore::open(config, &environment).await?);
        let mut ground = Ground::new(store, &environment);
        let mut spill = None;
        if let Some(url) = variables.text("MILLPOND_OBJECTS")? {
            let objects = Objects::open(url, &ObjectOptions::default())?;
            let letters = objects.prefix.clone().join("letters");
            spill = Some(Spill::new(Arc::clone(&objects.store), letters));
            let cargo = millpond_lanes::cargo::Objects::new(objects.store, objects.prefix);
            ground = ground.with_objects(cargo);
        }
        let aws = Aws::load(&environment).await?;
        Ok(Self { variables: variables.clone(), environment, ground, aws, spill })
    }

    /// With a store and a way to AWS of your own; `MILLPOND_STORE` and `MILLPOND_OBJECTS` are not read.
    #[must_use]
    pub fn with(variables: Variables, ground: &Ground, aws: Aws) -> Self {
        let (environment, ground) = (ground.environment.clone(), ground.clone());
        Self { variables, environment, ground, aws, spill: None }
    }

    /// The same with an object store for letters that are too large for their sink.
    #[must_use]
    pub fn spill(self, spill: Spill) -> Self {
        Self { spill: Some(spill), ..self }
    }

    /// A consumer with everything but its handlers: name, state, dead letters, attempts, order and so on, as the settings
    /// say. Add handlers and build it.
    ///
    /// # Errors
    /// What makes no sense, by the variable's name.
    pub fn consumer(&self) -> Result<Builder, FunctionError> {
        let variables = &self.variables;
        let dead = "MILLPOND_DEAD_LETTERS";
        let letters = variables.parsed::<SinkPlace>(dead)?.unwrap_or_else(default_letters);
        let records = variables.parsed::<SinkPlace>("MILLPOND_DEAD_RECORDS")?;
        let records = records.unwrap_or_else(|| letters.clone());
        let state = StoreState::new(Arc::clone(&self.ground.store), &self.environment);
        let mut builder = Consumer::builder(self.name("MILLPOND_CONSUMER")?)
            .environment(&self.environment)
            .state(state)
            .dead_messages(self.sink(&letters))
            .dead_records(self.sink(&records));
        if let Some(attempts) = variables.number("MILLPOND_ATTEMPTS", 1..=ATTEMPTS_MAX)? {
            builder = builder.attempts(attempts);
        }
        if let Some(number) = variables.number("MILLPOND_CONCURRENCY", 1..=CONCURRENCY_MAX)? {
            builder = builder.concurrency(number);
        }
        let (least, most) = TIMEOUT_SHARE_RANGE;
        if let Some(share) = variables.number("MILLPOND_TIMEOUT_SHARE", least..=most)? {
            builder = builder.timeout_share(share);
        }
        let orders = [("none", Order::None), ("shard", Order::PerShard), ("key", Order::PerKey)];
        if let Some(order) = variables.choice("MILLPOND_ORDER", &orders)? {
            builder = builder.order(order);
        }
        let responses = [("partial", Responses::Partial), ("error", Responses::Error)];
        if let Some(responses) = variables.choice("MILLPOND_RESPONSES", &responses)? {
            builder = builder.responses(responses);
        }
        if let Some(spill) = &self.spill {
            builder = builder.spill(spill.clone());
        }
        if variables.switch("MILLPOND_BREAKER", false)? {
            builder = builder.breaker(MappingBreaker::new(&self.aws));
        }
        Ok(builder)
    }

    /// The sink at a place.
    #[must_use]
    pub fn sink(&self, place: &SinkPlace) -> AnySink {
        AnySink(match place.clone() {
            SinkPlace::Queue { queue, client } => {
                Box::new(StoredSink::new(&self.ground, Part::Queue { queue, client }))
            }
            SinkPlace::Log { topic } => {
                Box::new(StoredSink::new(&self.ground, Part::Log { topic }))
            }
            SinkPlace::Kinesis { stream } => Box::new(KinesisSink::new(&self.aws, stream)),
            SinkPlace::Sqs { url } => Box::new(SqsSink::new(&self.aws, url)),
        })
    }

    /// The queues in the store.
    #[must_use]
    pub fn queues(&self) -> Queues {
        Queues::new(&self.ground)
    }

    /// The sequencer that `MILLPOND_SEQUENCER` names.
    ///
    /// # Errors
    /// When it is not named, or cannot be called so.
    pub fn sequencer(&self, config: Config) -> Result<Sequencer, FunctionError> {
        let name = self.variables.required("MILLPOND_SEQUENCER", "name the sequencer")?;
        Ok(Sequencer::open(Arc::clone(&self.ground.store), &self.environment, name, config)?)
    }

    /// What a variable says, or else the function's name.
    pub(super) fn name(&self, variable: &'static str) -> Result<&str, FunctionError> {
        match self.variables.text(variable)? {
            Some(name) => Ok(name),
            None => self
                .variables
                .function_name()
                .ok_or(FunctionError::NotInLambda { variable: "AWS_LAMBDA_FUNCTION_NAME" }),
        }
    }
}

fn default_letters() -> SinkPlace {
    SinkPlace::Queue { queue: "dead-letters".into(), client: String::new() }
}

/// Opens a queue, and makes it, with this configuration, when there is none.
///
/// # Errors
/// When the name cannot be one, or as the store's.
pub async fn open_queue(
    queues: &Queues,
    name: &str,
    config: QueueConfig,
) -> Result<Queue, QueueError> {
    match queues.open(name).await {
        Err(QueueError::NotFound { .. }) => {
            tracing::info!(queue = name, "a queue is not there yet, and is made");
            match queues.create(name, config).await {
                // Another was faster, and knew better.
                Err(QueueError::Exists { .. }) => queues.open(name).await,
                made => made,
            }
        }
        opened => opened,
    }
}

/// A sink of any kind.
#[derive(Debug)]
pub struct AnySink(Box<dyn Sink>);

#[async_trait::async_trait]
impl Sink for AnySink {
    fn bytes_max(&self) -> usize {
        self.0.bytes_max()
    }

    async fn put(&self, letters: Vec<Letter>) -> Vec<Result<SinkReceipt, SinkError>> {
        self.0.put(letters).await
    }
}
