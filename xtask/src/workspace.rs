//! Where the project is, what it holds, and how its commands are started.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Variables that cargo sets for a program that it runs, and that build scripts look at.
const OWN_VARIABLES: [&str; 7] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_LINKS",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
];

/// The project's root directory.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace that this tool belongs to.
    pub(crate) fn find() -> Self {
        let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest_dir.parent().map_or(manifest_dir.clone(), Path::to_path_buf);
        Self { root }
    }

    /// A path inside the project.
    pub(crate) fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// A program that runs in the root directory and can find no real AWS account: whatever an SDK
    /// would pick up from the environment, a profile or the instance is replaced or switched off.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env("AWS_ACCESS_KEY_ID", "dummy")
            .env("AWS_SECRET_ACCESS_KEY", "dummy")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_DEFAULT_REGION", "us-east-1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("AWS_CONFIG_FILE", self.path("target/no-aws-config"))
            .env("AWS_SHARED_CREDENTIALS_FILE", self.path("target/no-aws-credentials"))
            .env_remove("AWS_PROFILE")
            .env_remove("AWS_SESSION_TOKEN")
            .env_remove("AWS_WEB_IDENTITY_TOKEN_FILE")
            .env_remove("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
            .env_remove("AWS_CONTAINER_CREDENTIALS_FULL_URI");
        // What cargo has set for this tool. Build scripts that look at it (`ring`'s does) would run again, and half of the
        // dependencies be built anew, each time that cargo is called by this tool after it was called by hand.
        for variable in OWN_VARIABLES {
            command.env_remove(variable);
        }
        command
    }

    /// The cargo that runs this tool.
    pub(crate) fn cargo(&self) -> Command {
        self.command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
    }

    /// Files that are tracked or would be: everything git does not ignore, relative to the root.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let output = self
            .command("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()
            .context("cannot run git")?;
        if !output.status.success() {
            bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let listed = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
        let mut files: Vec<PathBuf> = listed
            .split_terminator('\0')
            .map(PathBuf::from)
            .filter(|file| self.path(file).is_file())
            .collect();
        files.sort();
        Ok(files)
    }

    /// The Rust files among [`Self::files`].
    pub(crate) fn rust_files(&self) -> Result<Vec<PathBuf>> {
        let mut files = self.files()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
        Ok(files)
    }

    /// The text of a file of the project.
    pub(crate) fn read(&self, relative: &Path) -> Result<String> {
        std::fs::read_to_string(self.path(relative))
            .with_context(|| format!("cannot read {}", relative.display()))
    }
}
