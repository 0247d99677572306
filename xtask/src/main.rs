//! The project's own tools, run as `cargo xtask <command>`.

use clap::Parser;

/// The project's own tools.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {}

fn main() {
    Cli::parse();
}
