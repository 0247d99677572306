//! Opening: the directory, the engine, and the check that nothing acknowledged is missing.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use millpond_store::{Clock, Direction, Result, StoreError};

use crate::acked::{Acked, AckedFile};
use crate::batch::Batch;
use crate::cargo::{Hold, Load};
use crate::commits::Found;
use crate::directory::{Directory, in_use};
use crate::engine::{Engine, EngineError, FjallEngine, Table};
use crate::faults::FaultyEngine;
use crate::options::{Durability, Options};
use crate::shared::Shared;
use crate::writer::Writer;

/// Opens everything that the writer needs.
///
/// # Errors
/// As [`EmbeddedStore::open`](crate::EmbeddedStore::open).
pub(crate) fn open_writer(options: &Options, clock: Arc<dyn Clock>) -> Result<Writer> {
    let directory = Directory::open(&options.directory)?;
    let fails = |error| open_error(&directory, error);
    let is_new = !directory.engine().exists();
    if is_new {
        refuse_lost_engine(&directory)?;
        directory.create_engine(|path| {
            FjallEngine::open(path, options.durability).map_err(fails)?;
            AckedFile::create(&directory.acked()).map_err(|error| fails(EngineError::Io(error)))?;
            Ok(())
        })?;
    }
    // Before the engine touches its files: it cuts off what it does not understand.
    let (acked, last_acked) = read_acked(&directory)?;
    let journals = FjallEngine::check(&directory.engine()).map_err(fails)?;
    if let Some(last) = journals.commit {
        refuse_lost_commits(&directory, last, last_acked)?;
    }
    journals.cut().map_err(|error| fails(EngineError::Io(error)))?;
    let fjall = FjallEngine::open(&directory.engine(), options.durability).map_err(fails)?;
    let engine: Box<dyn Engine> = match &options.faults {
        None => Box::new(fjall),
        Some(faults) => Box::new(FaultyEngine { inner: fjall, faults: Arc::clone(faults) }),
    };
    let shared = Arc::new(Shared::new(engine, clock, directory, options));
    let last = last_commit(&shared)?;
    refuse_lost_commits(&shared.directory, last, last_acked)?;
    let synced = options.durability == Durability::Durable;
    let was_synced = last_acked.synced;
    let (faults, options) = (options.faults.clone(), options.cargo);
    let hold = load_cargo(&shared, Load { synced, was_synced, faults, options })?;
    let mut writer = Writer { shared: Arc::clone(&shared), acked, synced, commit: last, hold };
    // What a killed process wrote and did not sync can be read now, so it has to be on disk too.
    let mut nothing = Batch::new(&shared, shared.clock.now());
    nothing.fence();
    writer.commit(nothing).map_err(|error| shared.read_error("open", error))?;
    Ok(writer)
}

fn refuse_lost_commits(directory: &Directory, last: u64, acked: Acked) -> Result<()> {
    if last >= acked.commit || !acked.synced {
        return Ok(());
    }
    let detail = format!(
        "commit {} was acknowledged, but the last one there is {last}; \
         restore the directory from a backup",
        acked.commit
    );
    Err(StoreError::corrupt(directory.engine().display().to_string(), detail))
}

/// Without an engine there must not have been a commit.
fn refuse_lost_engine(directory: &Directory) -> Result<()> {
    match AckedFile::open(&directory.acked()) {
        Ok((_, Some(Acked { commit: 1.., .. }))) => Err(StoreError::corrupt(
            directory.engine().display().to_string(),
            "the directory is missing, but commits were acknowledged; restore it from a backup",
        )),
        _ => Ok(()),
    }
}

fn read_acked(directory: &Directory) -> Result<(AckedFile, Acked)> {
    let damaged = |detail: &str| {
        let remedy = "without it nobody can tell whether an acknowledged commit is missing; \
                      restore the directory from a backup";
        let place = directory.acked().display().to_string();
        StoreError::corrupt(place, format!("{detail}; {remedy}"))
    };
    match AckedFile::open(&directory.acked()) {
        Ok((file, Some(acked))) => Ok((file, acked)),
        Ok((_, None)) => Err(damaged("no checksum in it matches")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(damaged("it is missing")),
        Err(error) => Err(open_error(directory, EngineError::Io(error))),
    }
}

/// The number of the last commit, with all before it there.
fn last_commit(shared: &Shared) -> Result<u64> {
    let mut found = Found::default();
    let everything = (vec![].into(), vec![0xff; 5].into());
    shared.scan(Table::Commits, everything, Direction::Forward, |key, value, _| {
        found.add(key, &value)?;
        Ok(ControlFlow::Continue(()))
    })?;
    found.last().map_err(|missing| {
        StoreError::corrupt(
            shared.place.clone(),
            format!("{missing}; restore the directory from a backup"),
        )
    })
}

fn load_cargo(shared: &Shared, load: Load) -> Result<Hold> {
    let mut rows = Vec::new();
    let everything = (vec![].into(), vec![0xff; 9].into());
    shared.scan(Table::Cargo, everything, Direction::Forward, |key, value, _| {
        rows.push((key.clone(), value));
        Ok(ControlFlow::Continue(()))
    })?;
    Hold::load(&shared.directory.cargo(), load, rows).map_err(|error| shared.locate(error))
}

fn open_error(directory: &Directory, error: EngineError) -> StoreError {
    let place = directory.engine().display().to_string();
    match error {
        EngineError::Damaged(detail) => StoreError::corrupt(place, detail),
        EngineError::Locked => in_use(directory.path()),
        EngineError::Io(_) | EngineError::Stopped => StoreError::Unavailable {
            operation: "open",
            detail: format!("{place}: {error}"),
            cause: Some(Arc::new(error)),
        },
    }
}
