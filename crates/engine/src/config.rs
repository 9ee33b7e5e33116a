//! The engine's settings and where their defaults come from: the environment and the machine.
//! It must not know what they do.

use std::fmt::Display;
use std::path::Path;

/// Which engine runs tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Workers run tasks as their dependencies finish.
    Threaded = 0,
    /// Each task runs on the pushing thread, in the order of pushes: for debugging, and the oracle.
    Naive = 1,
}

/// Settings of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Threads, the waiting one included.
    pub threads: usize,
    /// Which engine.
    pub kind: Kind,
    /// Unfinished tasks before a pushing thread is held back.
    pub max_tasks: usize,
    /// Bytes that unfinished tasks keep alive before a pushing thread is held back.
    pub max_bytes: usize,
    /// Whether some threads stay awake for a moment after their work, where each has a core of its own.
    pub patient: bool,
}

const MAX_THREADS: usize = 1024;
/// Deep enough to keep workers busy over a stall of the pushing thread; a task is some hundred bytes.
const MAX_TASKS: usize = 4096;
/// Assumed when the machine does not say.
const MEMORY: u64 = 4 << 30;

impl Config {
    /// From `MXNP_NUM_THREADS`, `MXNET_CPU_WORKER_NTHREADS` or `OMP_NUM_THREADS` (else the cores this process
    /// may use), `MXNP_ENGINE` (`threaded`, `naive`) or `MXNET_ENGINE_TYPE` (`NaiveEngine` or `Naive`), a quarter of
    /// the memory this process may use, and patient unless `OMP_WAIT_POLICY` is `passive`. An invalid value is
    /// ignored with a warning on stderr.
    pub fn from_env() -> Self {
        Config::from_vars(&|name| std::env::var(name).ok(), &warn)
    }

    /// As [`Config::from_env`], with variables from `get` and warnings to `warn`.
    pub fn from_vars(get: &dyn Fn(&str) -> Option<String>, warn: &dyn Fn(&dyn Display)) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, |n| n.get());
        Config {
            threads: threads_from(get, warn).unwrap_or_else(cores).min(MAX_THREADS),
            kind: kind_from(get, warn),
            max_tasks: MAX_TASKS,
            max_bytes: usize::try_from(memory_limit() / 4).unwrap_or(usize::MAX),
            patient: !get("OMP_WAIT_POLICY")
                .is_some_and(|policy| policy.trim().eq_ignore_ascii_case("passive")),
        }
    }

    /// How many of `threads` threads may stay awake without work at once: half of them, none where there are more
    /// threads than cores. The rest of a hundred would burn more than the wake-ups they spare.
    pub(crate) fn awake(&self, threads: usize) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        if self.patient && threads > 1 && threads <= cores { threads.div_ceil(2) } else { 0 }
    }
}

/// One line on stderr; the environment is read once, so each warning comes once.
fn warn(message: &dyn Display) {
    eprintln!("mxnp: warning: {message}");
}

fn threads_from(get: &dyn Fn(&str) -> Option<String>, warn: &dyn Fn(&dyn Display)) -> Option<usize> {
    ["MXNP_NUM_THREADS", "MXNET_CPU_WORKER_NTHREADS", "OMP_NUM_THREADS"].into_iter().find_map(|name| {
        let text = get(name).filter(|text| !text.trim().is_empty())?;
        // OMP_NUM_THREADS may list a number for each nesting level; the first is the outermost.
        let first = if name == "OMP_NUM_THREADS" { text.split(',').next().unwrap_or("") } else { &text };
        match first.trim().parse::<usize>() {
            Ok(threads) if threads > 0 => Some(threads),
            _ => {
                warn(&format_args!("{name}={text:?} is ignored: expected a positive whole number"));
                None
            }
        }
    })
}

fn kind_from(get: &dyn Fn(&str) -> Option<String>, warn: &dyn Fn(&dyn Display)) -> Kind {
    if let Some(text) = get("MXNP_ENGINE").filter(|text| !text.trim().is_empty()) {
        match text.trim().to_ascii_lowercase().as_str() {
            "naive" => return Kind::Naive,
            "threaded" => return Kind::Threaded,
            _ => warn(&format_args!("MXNP_ENGINE={text:?} is ignored: expected \"threaded\" or \"naive\"")),
        }
    }
    // MXNet's other values name its threaded engines.
    match get("MXNET_ENGINE_TYPE").as_deref() {
        Some("NaiveEngine" | "Naive") => Kind::Naive,
        _ => Kind::Threaded,
    }
}

/// The bytes of memory this process may use: the machine's, or less if a control group says so.
pub fn memory_limit() -> u64 {
    let machine = physical_memory().unwrap_or(MEMORY);
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    group_limit(&groups, Path::new("/sys/fs/cgroup")).map_or(machine, |limit| limit.min(machine))
}

#[cfg(unix)]
fn physical_memory() -> Option<u64> {
    // SAFETY: sysconf only reads a number.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(size).ok()?).filter(|bytes| *bytes > 0)
}

#[cfg(not(unix))]
fn physical_memory() -> Option<u64> {
    None
}

/// The smallest limit of the process's control groups, version 1 or 2, and of their parents.
///
/// `groups` is the text of `/proc/self/cgroup`: lines `id:controllers:path`, the controllers empty in
/// version 2 (Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst).
fn group_limit(groups: &str, root: &Path) -> Option<u64> {
    groups
        .lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            if controllers.is_empty() {
                least_limit(root, path, "memory.max")
            } else if controllers.split(',').any(|name| name == "memory") {
                least_limit(&root.join("memory"), path, "memory.limit_in_bytes")
            } else {
                None
            }
        })
        .min()
}

/// The smallest number in `file` in the folder `path` under `root` and in the folders above it. A container
/// may see its own group at the root while the path is the host's, so missing folders are passed over.
fn least_limit(root: &Path, path: &str, file: &str) -> Option<u64> {
    let folder = root.join(path.trim_start_matches('/'));
    let limits = folder.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(|folder| {
        let text = std::fs::read_to_string(folder.join(file)).ok()?;
        // Version 2 says "max" for no limit, version 1 a number near 2^63.
        text.trim().parse::<u64>().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn read(vars: &[(&str, &str)]) -> (Config, Vec<String>) {
        let warnings = RefCell::new(Vec::new());
        let get = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, text)| (*text).to_owned());
        let config = Config::from_vars(&get, &|message| warnings.borrow_mut().push(message.to_string()));
        (config, warnings.into_inner())
    }

    #[test]
    fn own_names_come_before_others() {
        let others = [("OMP_NUM_THREADS", "3,2"), ("MXNET_CPU_WORKER_NTHREADS", "5")];
        assert_eq!(read(&others[..1]).0.threads, 3);
        assert_eq!(read(&others).0.threads, 5);
        assert_eq!(read(&[others[0], others[1], ("MXNP_NUM_THREADS", " 7 ")]).0.threads, 7);
        assert_eq!(read(&[("MXNP_NUM_THREADS", "99999999")]).0.threads, MAX_THREADS);
        assert!(read(&[]).0.threads >= 1);
    }

    #[test]
    fn invalid_values_are_ignored_with_one_warning_each() {
        let (config, warnings) = read(&[("MXNP_NUM_THREADS", "-1"), ("OMP_NUM_THREADS", "2")]);
        assert_eq!(config.threads, 2);
        assert_eq!(warnings, ["MXNP_NUM_THREADS=\"-1\" is ignored: expected a positive whole number"]);
        let (config, warnings) = read(&[("MXNP_ENGINE", "quick"), ("MXNET_ENGINE_TYPE", "NaiveEngine")]);
        assert_eq!((config.kind, warnings.len()), (Kind::Naive, 1));
        assert!(read(&[("MXNP_NUM_THREADS", ""), ("MXNP_ENGINE", "")]).1.is_empty());
    }

    #[test]
    fn nobody_stays_awake_where_cores_are_short_or_the_program_says_so() {
        let (config, _) = read(&[]);
        assert!(config.patient);
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        assert_eq!((config.awake(1), config.awake(cores + 1)), (0, 0));
        assert_eq!(config.awake(cores), if cores > 1 { cores.div_ceil(2) } else { 0 });
        assert_eq!(read(&[("OMP_WAIT_POLICY", "PASSIVE")]).0.awake(cores), 0);
    }

    #[test]
    fn the_engine_is_chosen_by_either_name() {
        assert_eq!(read(&[]).0.kind, Kind::Threaded);
        assert_eq!(read(&[("MXNP_ENGINE", "Naive")]).0.kind, Kind::Naive);
        assert_eq!(read(&[("MXNET_ENGINE_TYPE", "Naive")]).0.kind, Kind::Naive);
        let both = [("MXNP_ENGINE", "threaded"), ("MXNET_ENGINE_TYPE", "NaiveEngine")];
        assert_eq!(read(&both).0.kind, Kind::Threaded);
        assert!(read(&[("MXNET_ENGINE_TYPE", "ThreadedEnginePerDevice")]).1.is_empty());
    }

    #[test]
    fn the_least_limit_of_the_control_groups_counts() {
        let root = std::env::temp_dir().join(format!("mxnp-cgroup-{}", std::process::id()));
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("a/b/memory.max", "max\n");
        put("a/memory.max", "4096\n");
        put("memory.max", "8192\n");
        put("memory/c/memory.limit_in_bytes", "9223372036854771712\n");
        put("memory/memory.limit_in_bytes", "1024\n");
        assert_eq!(group_limit("0::/a/b\n", &root), Some(4096));
        assert_eq!(group_limit("0::/host/path\n", &root), Some(8192));
        assert_eq!(group_limit("5:cpu,memory:/c\n1:cpu:/a\n", &root), Some(1024));
        assert_eq!(group_limit("0::/a\n5:memory:/c\n", &root), Some(1024));
        assert_eq!(group_limit("nonsense\n1:cpu:/a\n", &root), None);
        std::fs::remove_dir_all(&root).unwrap();
        assert!(memory_limit() > 0);
    }
}
