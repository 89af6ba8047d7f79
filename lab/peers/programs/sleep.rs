// Sleeps by std::thread::sleep. Each line of input, "COUNT REQUEST_NS", is
// answered by the CPU time in ns and the lateness of each wait in ns.
use std::io::{self, BufRead, Write};
use std::thread;
use std::time::{Duration, Instant};

#[repr(C)]
struct Timeval {
    sec: std::ffi::c_long,
    usec: std::ffi::c_long,
}

// What getrusage(2) fills in: two times, then fourteen counts.
#[repr(C)]
struct Rusage {
    user: Timeval,
    system: Timeval,
    counts: [std::ffi::c_long; 14],
}

extern "C" {
    fn getrusage(who: std::ffi::c_int, usage: *mut Rusage) -> std::ffi::c_int;
}

fn cpu() -> i64 {
    let mut usage: Rusage = unsafe { std::mem::zeroed() };
    unsafe { getrusage(0, &mut usage) };
    let us = |t: &Timeval| t.sec as i64 * 1_000_000 + (t.usec as i64 & 0xffff_ffff);
    (us(&usage.user) + us(&usage.system)) * 1000
}

fn sleep(request: Duration) -> i128 {
    let start = Instant::now();
    thread::sleep(request);
    start.elapsed().as_nanos() as i128 - request.as_nanos() as i128
}

fn main() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let line = line?;
        let numbers: Vec<u64> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let (count, request) = (numbers[0] as usize, Duration::from_nanos(numbers[1]));
        let mut late = vec![0; count];
        sleep(request); // does not count
        let before = cpu();
        for l in late.iter_mut() {
            *l = sleep(request);
        }
        let mut answer = (cpu() - before).to_string();
        for l in late {
            answer += &format!(" {l}");
        }
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}
