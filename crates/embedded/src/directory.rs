//! The store's directory: who may use it, and whether it is one.
//!
//! ```text
//! lock      held while the store is open
//! header    "millpond store", format, engine, checksum: lines of text
//! acked     the number of the last acknowledged commit
//! engine/   the engine's own files
//! cargo/    large rows
//! ```
//! `header.new` and `engine.new/` are what a creation that was cut off leaves; they hold nothing.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use millpond_store::{Result, StoreError};

const FORMAT: u32 = 2;
const ENGINE: &str = "fjall 3";
const KNOWN: [&str; 7] = ["lock", "header", "header.new", "acked", "engine", "engine.new", "cargo"];

/// A directory that this process holds.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Locked until it is dropped.
    _lock: File,
}

impl Directory {
    /// Makes the directory if need be, locks it, and checks or writes its header.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] when it cannot be used; [`StoreError::Corrupt`] when the header is damaged.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        fs::create_dir_all(path).map_err(|error| unusable(path, "made", &error))?;
        let entries = fs::read_dir(path).map_err(|error| unusable(path, "read", &error))?;
        let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        let has = |name: &str| names.iter().any(|known| known == name);
        let foreign = names.iter().find(|name| !KNOWN.iter().any(|known| *name == known));
        if let (false, Some(foreign)) = (has("header"), foreign) {
            return Err(StoreError::misconfigured(
                format!("{shown} holds {} and is no Millpond store", foreign.display()),
                "name an empty directory, or one that does not exist yet",
            ));
        }
        let this = Self { path: path.to_path_buf(), _lock: lock(path)? };
        if this.header().exists() {
            this.check_header()?;
        } else if has("engine") || has("acked") {
            return Err(StoreError::corrupt(
                this.header().display().to_string(),
                "the file is missing, but the store's data is there; restore it from a backup",
            ));
        } else {
            this.write_header().map_err(|error| unusable(path, "written to", &error))?;
        }
        Ok(this)
    }

    /// The store's directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn header(&self) -> PathBuf {
        self.path.join("header")
    }

    /// The file with the last acknowledged commit.
    pub(crate) fn acked(&self) -> PathBuf {
        self.path.join("acked")
    }

    /// The engine's directory.
    pub(crate) fn engine(&self) -> PathBuf {
        self.path.join("engine")
    }

    /// The directory of cargo files.
    pub(crate) fn cargo(&self) -> PathBuf {
        self.path.join("cargo")
    }

    /// Makes the engine's directory complete or not at all: `make` fills it under another name.
    ///
    /// # Errors
    /// As `make`, and [`StoreError::Misconfigured`] when the directory cannot be written to.
    pub(crate) fn create_engine(&self, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let unusable = |error: io::Error| unusable(&self.path, "written to", &error);
        let unfinished = self.path.join("engine.new");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).map_err(unusable)?;
        }
        make(&unfinished)?;
        fs::rename(&unfinished, self.engine()).map_err(unusable)?;
        self.sync().map_err(unusable)
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn write_header(&self) -> io::Result<()> {
        let lines = format!("millpond store\nformat {FORMAT}\nengine {ENGINE}\n");
        let sum = crc32fast::hash(lines.as_bytes());
        let unfinished = self.path.join("header.new");
        let mut file = File::create(&unfinished)?;
        writeln!(file, "{lines}checksum {sum:08x}")?;
        file.sync_all()?;
        fs::rename(unfinished, self.header())?;
        self.sync()
    }

    fn check_header(&self) -> Result<()> {
        let place = self.header().display().to_string();
        let damaged = |detail: &str| StoreError::corrupt(place.clone(), detail);
        let bytes = fs::read(self.header()).map_err(|error| damaged(&error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| damaged("it is no text"))?;
        let (lines, sum) = text
            .strip_suffix('\n')
            .and_then(|text| text.rsplit_once("\nchecksum "))
            .ok_or_else(|| damaged("it does not end in a checksum"))?;
        let lines = format!("{lines}\n");
        if sum != format!("{:08x}", crc32fast::hash(lines.as_bytes())) {
            return Err(damaged("its checksum does not match"));
        }
        let field = |name: &str| lines.lines().find_map(|line| line.strip_prefix(name));
        let format = field("format ").and_then(|format| format.parse::<u32>().ok());
        let shown = self.path.display();
        match (lines.starts_with("millpond store\n"), format, field("engine ")) {
            (true, Some(FORMAT), Some(ENGINE)) => Ok(()),
            (true, Some(format), _) if format > FORMAT => Err(StoreError::misconfigured(
                format!(
                    "{shown} has format {format}, and this version knows formats up to {FORMAT}"
                ),
                "open it with the newer version of Millpond that wrote it",
            )),
            (true, Some(format), _) if format < FORMAT => Err(StoreError::misconfigured(
                format!(
                    "{shown} has format {format} of before the first release, and this version \
                     knows format {FORMAT} only"
                ),
                "open it with the older version of Millpond that wrote it, or begin a new one",
            )),
            (true, Some(_), Some(engine)) if engine != ENGINE => Err(StoreError::misconfigured(
                format!("{shown} was made with engine {engine:?}, and this version has {ENGINE:?}"),
                "open it with the version of Millpond that wrote it",
            )),
            _ => Err(damaged("it is no header of a Millpond store")),
        }
    }
}

fn unusable(path: &Path, done: &str, error: &io::Error) -> StoreError {
    StoreError::misconfigured(
        format!("the directory {} cannot be {done}: {error}", path.display()),
        "check that it is a directory and that you may write to it",
    )
}

fn lock(path: &Path) -> Result<File> {
    let open = OpenOptions::new().create(true).truncate(false).write(true).open(path.join("lock"));
    let file = open.map_err(|error| unusable(path, "written to", &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(in_use(path)),
        Err(TryLockError::Error(error)) => Err(unusable(path, "locked", &error)),
    }
}

/// The error for a directory that somebody else has open.
pub(crate) fn in_use(path: &Path) -> StoreError {
    StoreError::misconfigured(
        format!("the store in {} is open already, here or in another process", path.display()),
        "close it there first, or name another directory",
    )
}
