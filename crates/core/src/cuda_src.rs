//! The sources of the CUDA kernels that cupy lacks, embedded: Python compiles them at run time through cupy.
//! Knows neither a compiler nor a device; what each kernel does is said in its file of `cuda/`.

/// (family, source), sorted by family.
pub const SOURCES: &[(&str, &str)] = &[("index", include_str!("../../../cuda/index.cu"))];

/// The source of a family.
pub fn source(family: &str) -> Option<&'static str> {
    SOURCES.iter().find(|(name, _)| *name == family).map(|&(_, source)| source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_of_cuda_is_embedded_once() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cuda");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| {
                entry.unwrap().file_name().into_string().unwrap().strip_suffix(".cu").map(String::from)
            })
            .collect();
        files.sort();
        let names: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        assert_eq!(files, names);
    }

    #[test]
    fn a_source_is_found_by_family() {
        assert!(source("index").is_some_and(|text| text.contains("mxnp_take_16_int64")));
        assert_eq!(source("sorcery"), None);
    }
}
