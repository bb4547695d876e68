//! What the stand-in calls, as C functions: each finds the block that its thread is running.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::ptr;

use crate::block::Block;
use crate::fault::Kind;

/// Where a thread is, as the stand-in declares it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Here {
    pub(crate) thread: u32,
    pub(crate) block: u32,
    pub(crate) threads: u32,
    pub(crate) blocks: u32,
}

/// What the lanes of a warp brought to an exchange, as the stand-in declares it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Exchanged {
    pub(crate) value: [u64; 32],
    pub(crate) ballot: u32,
    pub(crate) largest: u32,
}

/// The table of functions that an object is given when it is loaded.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Emulator {
    here: extern "C" fn() -> *const Here,
    exchange: extern "C" fn(u32, u32, u64, *const c_void) -> *const Exchanged,
    barrier: extern "C" fn(u32, u32, *const c_void) -> u32,
    access: extern "C" fn(*const c_void, usize, u32, *const c_void),
    undefined: extern "C" fn(*const c_char, u32, *const c_char, *const c_void),
    copy: extern "C" fn(*const c_void, *const c_void, usize, *const c_void),
    commit: extern "C" fn(),
    wait: extern "C" fn(u32, *const c_void),
}

/// The one table.
pub(crate) static EMULATOR: Emulator = Emulator { here, exchange, barrier, access, undefined, copy, commit, wait };

/// What is done to memory, as the stand-in numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    Atomic,
}

thread_local! {
    static RUNNING: Cell<*mut Block> = const { Cell::new(ptr::null_mut()) };
}

/// Has the hooks find a block for as long as `body` runs.
pub(crate) fn while_running(block: *mut Block, body: impl FnOnce()) {
    let before = RUNNING.replace(block);
    body();
    RUNNING.set(before);
}

extern "C" fn here() -> *const Here {
    // SAFETY: called by kernels alone, which run within `while_running` of a block that is alive; no reference to it is held meanwhile.
    unsafe { &raw const (*RUNNING.get()).here }
}

extern "C" fn exchange(meeting: u32, lanes: u32, value: u64, caller: *const c_void) -> *const Exchanged {
    // SAFETY: as above.
    unsafe { Block::exchange(RUNNING.get(), meeting, lanes, value, caller.addr()) }
}

extern "C" fn barrier(meeting: u32, vote: u32, caller: *const c_void) -> u32 {
    // SAFETY: as above.
    unsafe { Block::barrier(RUNNING.get(), meeting, vote, caller.addr()) }
}

extern "C" fn access(address: *const c_void, bytes: usize, access: u32, caller: *const c_void) {
    let access = match access {
        0 => Access::Read,
        1 => Access::Write,
        _ => Access::Atomic,
    };
    // SAFETY: as above.
    unsafe { Block::access(RUNNING.get(), address.addr(), bytes, access, caller.addr()) }
}

extern "C" fn undefined(what: *const c_char, _line: u32, _file: *const c_char, caller: *const c_void) {
    // SAFETY: the stand-in passes a literal.
    let what = unsafe { std::ffi::CStr::from_ptr(what) }.to_string_lossy().into_owned();
    // SAFETY: as above.
    unsafe { Block::stop(RUNNING.get(), Kind::Undefined, what, caller.addr(), None) }
}

extern "C" fn copy(to: *const c_void, from: *const c_void, bytes: usize, caller: *const c_void) {
    // SAFETY: as above.
    unsafe { Block::copy(RUNNING.get(), to.addr(), from.addr(), bytes, caller.addr()) }
}

extern "C" fn commit() {
    // SAFETY: as above.
    unsafe { (*RUNNING.get()).commit() }
}

extern "C" fn wait(pending: u32, caller: *const c_void) {
    // SAFETY: as above.
    unsafe { Block::finish_copies(RUNNING.get(), pending, caller.addr()) }
}
