//! The command line of vkaccel.

mod bind;
mod dtype;
mod exit;
mod info;
mod memory;
mod npy;
mod options;
mod push;
mod report;
mod run;
mod shader;
mod trust;
mod values;
mod words;

use std::process::ExitCode;

use options::Request;

fn main() -> ExitCode {
    let request = match options::parse(std::env::args_os()) {
        Ok(request) => request,
        Err(error) => error.exit(),
    };
    exit::guard(|| match request {
        Request::Info(options) => info::run(&options),
        Request::Run(options) => run::run(&options),
        Request::Memory(request) => memory::run(&request),
    })
}
