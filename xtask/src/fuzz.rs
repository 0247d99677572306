//! `cargo xtask fuzz`: the fuzz targets, guided by coverage, on the ordinary toolchain.
//!
//! `cargo fuzz` wants a nightly compiler for its sanitizers. In code without `unsafe` they find little: what matters are
//! the counters by which libFuzzer sees how far an input came, and LLVM puts those in on any toolchain.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

const MANIFEST: &str = "fuzz/Cargo.toml";
const CORPUS: &str = "fuzz/corpus";

/// What makes LLVM count edges and compare operands, as libFuzzer wants it. In one unit for each crate, or a linker that
/// drops what nobody names would drop counters.
const FLAGS: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

/// No target needs more, and what it finds stays small enough to be kept.
const INPUT_BYTES_MAX: usize = 2_048;
/// One input takes milliseconds; on a machine that does ten other things, still not this long.
const INPUT_SECONDS_MAX: usize = 20;

/// Of what a target says when it fails.
const LINES_SHOWN: usize = 40;

/// Run fuzz targets, guided by coverage, one after another.
///
/// Works on the ordinary toolchain, and needs a C++ compiler for libFuzzer. Each target begins with its corpus in
/// `fuzz/corpus`, which the tests replay, and with what it found here before, below `target/fuzz`. An input that breaks
/// something is written there and named: copy it to the corpus, under a name that says what it is, and mend what it broke.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only this target. Default: all.
    target: Option<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// List the targets, run nothing.
    #[arg(long)]
    list: bool,
    /// Copy to the corpus what came further than anything in it.
    #[arg(long)]
    keep: bool,
}

/// Runs the targets; `false` when one of them found something.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    let mut targets = targets(workspace)?;
    if args.list {
        println!("{}", targets.join("\n"));
        return Ok(true);
    }
    if let Some(wanted) = &args.target {
        targets.retain(|target| target == wanted);
        if targets.is_empty() {
            bail!("there is no target {wanted}: see `cargo xtask fuzz --list`");
        }
    }
    let place = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace.path("target"), PathBuf::from)
        .join("fuzz");
    let binaries = build(workspace, &place, args.target.as_deref())?;
    let mut well = true;
    for target in &targets {
        let fuzzer = Fuzzer { workspace, binary: binaries.join(target), place: &place, target };
        well &= fuzzer.run(args.seconds)?;
        if args.keep {
            fuzzer.keep()?;
        }
    }
    Ok(well)
}

/// The targets, by the files that they are in.
fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let files = fs::read_dir(workspace.path("fuzz/fuzz_targets"))?;
    let mut targets = Vec::new();
    for file in files {
        let path = file?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            targets.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    targets.sort();
    Ok(targets)
}

/// Builds the targets; the directory that they are in.
fn build(workspace: &Workspace, place: &Path, target: Option<&str>) -> Result<PathBuf> {
    let host = host(workspace)?;
    println!("building for {host}, which takes minutes the first time");
    let mut cargo = workspace.cargo();
    cargo
        .args(["build", "--manifest-path", MANIFEST, "--target", &host, "--target-dir"])
        .arg(place);
    match target {
        Some(target) => cargo.args(["--bin", target]),
        None => cargo.arg("--bins"),
    };
    // With a target named, the flags are not for build scripts and macros.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}")).env_remove("RUSTFLAGS");
    if !cargo.status().context("cannot run cargo")?.success() {
        bail!("the fuzz targets cannot be built");
    }
    Ok(place.join(host).join("debug"))
}

fn host(workspace: &Workspace) -> Result<String> {
    let output = workspace.command("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say which host it is for")
}

/// One target, built.
struct Fuzzer<'a> {
    workspace: &'a Workspace,
    binary: PathBuf,
    place: &'a Path,
    target: &'a str,
}

impl Fuzzer<'_> {
    fn found(&self) -> Result<PathBuf> {
        let found = self.place.join("found").join(self.target);
        fs::create_dir_all(&found)?;
        Ok(found)
    }

    fn corpus(&self) -> Result<PathBuf> {
        let corpus = self.workspace.path(CORPUS).join(self.target);
        fs::create_dir_all(&corpus)?;
        Ok(corpus)
    }

    fn command(&self) -> Result<Command> {
        let broken = self.place.join("broken");
        fs::create_dir_all(&broken)?;
        let mut command = self.workspace.command(&self.binary);
        command.arg(format!("-artifact_prefix={}/{}-", broken.display(), self.target));
        command.arg(format!("-max_len={INPUT_BYTES_MAX}"));
        command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
        Ok(command)
    }

    /// Runs for so long; `false` when an input broke something.
    fn run(&self, seconds: u64) -> Result<bool> {
        println!("\n--- {} ---", self.target);
        let mut command = self.command()?;
        command.arg(format!("-max_total_time={seconds}")).arg("-print_final_stats=1");
        command.arg(self.found()?).arg(self.corpus()?);
        let output = command.output().with_context(|| format!("cannot run {}", self.target))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let last =
            said.lines().rfind(|line| line.contains("cov:")).unwrap_or("nothing was counted");
        println!("{last}");
        for line in said.lines().filter(|line| line.contains("number_of_executed_units")) {
            println!("{line}");
        }
        if !output.status.success() {
            // The end of it has the panic, and where the input is.
            let lines: Vec<&str> = said.lines().rev().take(LINES_SHOWN).collect();
            for line in lines.iter().rev() {
                println!("{line}");
            }
            println!("FAILED {}: {}", self.target, output.status);
        }
        Ok(output.status.success())
    }

    /// Adds to the corpus what comes further than anything in it.
    fn keep(&self) -> Result<()> {
        let mut command = self.command()?;
        command.arg("-merge=1").arg(self.corpus()?).arg(self.found()?);
        let output = command.output().with_context(|| format!("cannot run {}", self.target))?;
        if !output.status.success() {
            bail!("{}: the corpus could not be merged: {}", self.target, output.status);
        }
        Ok(())
    }
}
