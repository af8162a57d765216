//! Task Bench on Caribou: see `task_bench --help`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use caribou_apps::harness;
use caribou_apps::task_bench::options::{Options, arguments};
use caribou_apps::task_bench::run;

fn main() -> ExitCode {
    harness::start(arguments(std::env::args_os()), |options: Options, _| run::main(&options))
}
