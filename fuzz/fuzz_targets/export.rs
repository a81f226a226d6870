//! Connections that another engine exported, guided by coverage.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::export(data));
