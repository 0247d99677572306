//! Progress of long work, for people who watch.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on the terminal, or nothing where there is none.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Work of a known or unknown length. Bars go to standard error, and only when that is a terminal.
    pub fn start(what: &'static str, total: Option<u64>) -> Self {
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::new_spinner(),
        };
        let template = match total {
            Some(_) => "{prefix} {wide_bar} {pos}/{len} ({per_sec})",
            None => "{prefix} {spinner} {pos} ({per_sec})",
        };
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(what);
        Self(bar)
    }

    /// So many more are done.
    pub fn add(&self, count: usize) {
        self.0.inc(count as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
