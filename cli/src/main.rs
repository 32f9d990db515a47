//! The command line of vkaccel.

fn main() {}
