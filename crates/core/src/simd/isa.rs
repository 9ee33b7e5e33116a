//! Which instruction set this process uses: found once, or forced by `MXNP_ISA`.

use std::sync::atomic::{AtomicU8, Ordering};

/// An instruction set that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Isa {
    /// What every machine of the target has.
    Baseline,
    Avx2,
    Avx512,
    /// AArch64's vectors; the baseline there, so kernels need no second copy.
    Neon,
}

impl Isa {
    pub const ALL: [Isa; 4] = [Isa::Baseline, Isa::Avx2, Isa::Avx512, Isa::Neon];

    pub const fn name(self) -> &'static str {
        match self {
            Isa::Baseline => "baseline",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Neon => "neon",
        }
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => true,
            #[allow(unreachable_patterns)] // which arms are reachable depends on the target
            _ => false,
        }
    }

    /// The best one this machine has.
    fn best() -> Isa {
        let order = [Isa::Avx512, Isa::Avx2, Isa::Neon];
        order.into_iter().find(|isa| isa.is_available()).unwrap_or(Isa::Baseline)
    }

    fn from_code(code: u8) -> Option<Isa> {
        Isa::ALL.into_iter().find(|isa| *isa as u8 == code)
    }
}

const UNKNOWN: u8 = u8::MAX;
static CURRENT: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The instruction set in use: the best one, or the one `MXNP_ISA` names. Found at the first call.
pub fn isa() -> Isa {
    match Isa::from_code(CURRENT.load(Ordering::Relaxed)) {
        Some(isa) => isa,
        None => detect(),
    }
}

#[cold]
fn detect() -> Isa {
    let isa = match std::env::var("MXNP_ISA") {
        Ok(name) if !name.is_empty() => named(&name),
        _ => Isa::best(),
    };
    // Several threads may come here at once: the first one's answer stands.
    match CURRENT.compare_exchange(UNKNOWN, isa as u8, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => isa,
        Err(code) => Isa::from_code(code).unwrap_or(isa),
    }
}

/// The one `MXNP_ISA` asks for; a warning and the best one where that cannot be had.
fn named(name: &str) -> Isa {
    match Isa::ALL.into_iter().find(|isa| isa.name() == name) {
        Some(isa) if isa.is_available() => isa,
        found => {
            let best = Isa::best();
            let why = if found.is_some() { "this machine lacks it" } else { "no such instruction set" };
            eprintln!(
                "mxnp: MXNP_ISA={name} is ignored ({why}); using {}\nhint: baseline, avx2, avx512",
                best.name()
            );
            best
        }
    }
}

/// Makes this process use `isa` from now on, so that a test can compare instruction sets. False, and no
/// change, where the machine lacks it. Steps chosen before keep theirs.
pub fn select(isa: Isa) -> bool {
    let ok = isa.is_available();
    if ok {
        CURRENT.store(isa as u8, Ordering::Relaxed);
    }
    ok
}
