//! Words for people.

/// A number of things, for people.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A type's own name, without its path and what it is generic over.
pub(crate) fn short_type_name<T: ?Sized>() -> &'static str {
    let path = std::any::type_name::<T>();
    let plain = path.split('<').next().unwrap_or(path);
    plain.rsplit("::").next().unwrap_or(plain)
}
