//! One batch, from records to what comes again.

mod answer;
mod batch;
mod budget;
mod call;
mod entry;
mod finish;
mod letters;
mod load;
mod lost;
mod messages;
mod prepare;
mod read;
mod steps;
mod tasks;
mod window;
mod window_end;

pub(crate) use answer::Answer;
pub(crate) use batch::run;
pub(crate) use lost::Lost;
