//! Starts the command `caribou`, which the library `caribou_tools` implements.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    caribou_tools::main()
}
