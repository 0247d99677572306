//! From start to stop.

use std::io::Write as _;
use std::sync::Arc;

use http::Uri;
use http::uri::Authority;
use millpond_sqs::{Sqs, SqsOptions};
use millpond_store::{Clock, Environment, SystemClock};
use tokio::sync::watch;

use super::clock::TestClock;
use super::declare::declare;
use super::error::ServeError;
use super::files;
use super::ground::Opened;
use super::health::Health;
use super::pages::Pages;
use super::signals::Signals;
use super::welcome::welcome;
use crate::api::{self, Api, authorize_by};
use crate::config::Config;
use crate::http::{Door, Inside, Listener, Names, Room, Tls};
use crate::telemetry::{Metrics, Sources, Traces, log_filter, start_logs};

/// Serves until told to stop.
pub fn run(config: Config) -> Result<(), ServeError> {
    // The configuration was checked, and whoever started logs before keeps them.
    if let Ok(filter) = log_filter(&config.log_level) {
        let _ = start_logs(config.log_format, filter);
    }
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|source| ServeError::System { what: "no threads can be started", source })?;
    let outcome = runtime.block_on(Box::pin(serve(config)));
    // What still runs has nobody to answer to.
    runtime.shutdown_background();
    outcome
}

async fn serve(mut config: Config) -> Result<(), ServeError> {
    let mut signals = Signals::listen()?;
    files::fit(&mut config.limits);
    let listener = Listener::bind(&config.addresses)
        .map_err(|(listen, source)| ServeError::Listen { listen, source })?;
    let tls = config.tls.clone().map(Tls::load).transpose()?;
    let test_clock = config.test_clock.then(TestClock::new);
    let environment = environment(test_clock.as_ref());
    let (traces, sending) = match &config.traces {
        Some(config) => Some(Traces::start(config)?).unzip(),
        None => (None, None),
    };
    let opened = Box::pin(Opened::open(&config, &environment)).await?;
    let opened = if traces.is_some() { opened.traced() } else { opened };
    let outcome = {
        let options = sqs_options(&config);
        let parts = async {
            declare(&opened.ground, &options, &config.queues).await?;
            Sqs::open(&opened.ground, options.clone()).await.map_err(ServeError::from)
        };
        match Box::pin(parts).await {
            Ok(sqs) => {
                let server = Server::new(&config, &opened, sqs, tls, test_clock, traces);
                Box::pin(server.run(listener, &config, &mut signals)).await
            }
            Err(error) => Err(error),
        }
    };
    opened.close().await;
    if let Some(sending) = sending {
        tokio::select! {
            biased;
            () = sending.stop() => {}
            signal = signals.next() => tracing::warn!(signal, "told again: the last traces are lost"),
        }
    }
    tracing::info!("stopped");
    outcome
}

fn environment(test_clock: Option<&TestClock>) -> Environment {
    let system = Environment::system();
    match test_clock {
        Some(clock) => Environment { clock: Arc::new(clock.clone()), ..system },
        None => system,
    }
}

fn sqs_options(config: &Config) -> SqsOptions {
    SqsOptions {
        account: config.account_id.clone(),
        region: config.region.clone(),
        public_url: config.public_url.clone(),
        keys: config.keys.clone(),
        quiet_periods: config.quiet_periods,
        ..SqsOptions::default()
    }
}

/// Everything that runs.
struct Server {
    sqs: Sqs,
    api: Api,
    inside: Arc<Inside>,
    health: Arc<Health>,
    tls: Option<Tls>,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
}

impl Server {
    fn new(
        config: &Config,
        opened: &Opened,
        sqs: Sqs,
        tls: Option<Tls>,
        test_clock: Option<TestClock>,
        traces: Option<Traces>,
    ) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let room = Room::new(&config.limits, &clock);
        let metrics = Metrics::new(Sources {
            sqs: sqs.clone(),
            room: room.clone(),
            meter: opened.meter.clone(),
            spans: traces.as_ref().map(Traces::counts),
            started: clock.now(),
        });
        let health = Arc::new(Health::new(Arc::clone(&opened.ground.store), Arc::clone(&clock)));
        let pages = Pages {
            health: Arc::clone(&health),
            metrics: Arc::clone(&metrics),
            metrics_for: config.metrics,
            test_clock,
        };
        let api = native_api(config, opened, &sqs);
        let inside = Arc::new(Inside {
            doors: doors(&api, &sqs),
            special: Arc::new(pages),
            room,
            limits: config.limits.clone(),
            metrics: Arc::clone(&metrics),
            clock: Arc::clone(&clock),
            anonymous: config.keys.is_none(),
            names: names(config),
            traces,
        });
        Self { sqs, api, inside, health, tls, metrics, clock }
    }

    /// Serves until a signal comes or the store stops for good; then lets requests finish. A second signal ends it at
    /// once.
    async fn run(
        self,
        listener: Listener,
        config: &Config,
        signals: &mut Signals,
    ) -> Result<(), ServeError> {
        say(&welcome(config, listener.address()));
        tracing::info!(addresses = ?listener.addresses(), store = %config.store, "serving");
        let (stop, stopped) = watch::channel(false);
        let follow = self.tls.clone().map(|tls| {
            tokio::spawn(tls.follow(Arc::clone(&self.clock), Arc::clone(&self.metrics)))
        });
        let maintain = self.api.clone().maintain_until_closed(Arc::clone(&self.clock));
        let maintain = tokio::spawn(maintain);
        let mut accepting =
            tokio::spawn(listener.run(Arc::clone(&self.inside), self.tls.clone(), stopped));
        let outcome = tokio::select! {
            biased;
            signal = signals.next() => {
                tracing::info!(signal, "stopping");
                Ok(())
            }
            error = self.health.poisoned(&config.store) => {
                tracing::error!(%error, "the store has stopped for good; start again");
                Err(ServeError::Store { place: config.store.to_string(), source: error })
            }
            _ = &mut accepting => {
                let source = std::io::Error::other("the listener ended by itself");
                Err(ServeError::System { what: "no connections can be taken", source })
            }
        };
        self.health.stop();
        self.sqs.close();
        self.api.close();
        // Nobody listens when the listener has ended.
        let _ = stop.send(true);
        if !accepting.is_finished() {
            tokio::select! {
                biased;
                _ = &mut accepting => {}
                signal = signals.next() => {
                    tracing::warn!(signal, "told again: not waiting for requests");
                    accepting.abort();
                    let _ = accepting.await;
                }
            }
        }
        if let Some(follow) = follow {
            follow.abort();
            let _ = follow.await;
        }
        maintain.abort();
        let _ = maintain.await;
        self.api.retire().await;
        outcome
    }
}

/// The native API, on the same store.
fn native_api(config: &Config, opened: &Opened, sqs: &Sqs) -> Api {
    let api = Api::with_queues(&opened.ground, opened.backend(), sqs.queues());
    match &config.keys {
        Some(keys) => {
            let environment = opened.ground.environment.clone();
            api.with_authorize(authorize_by(keys.clone(), environment))
        }
        None => api,
    }
}

/// What the server is called by those who know it.
fn names(config: &Config) -> Names {
    let public = config.public_url.as_deref().and_then(|url| url.parse::<Uri>().ok());
    let public = public.as_ref().and_then(|url| url.authority()).map(Authority::as_str);
    Names::new(public.into_iter().chain([config.listen.to_string().as_str()]))
}

/// Who answers what, by the beginning of the path.
fn doors(api: &Api, sqs: &Sqs) -> Vec<(&'static str, Arc<dyn Door>)> {
    vec![(api::PREFIX, Arc::new(api.clone())), ("/", Arc::new(sqs.clone()))]
}

/// Writes to standard output. Whoever closed it does not want to know.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}
