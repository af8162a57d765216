//! Opens the listening socket for an address that a person wrote.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};

/// Listens on `HOST:PORT`, `:PORT` or `PORT`. An error is one line.
pub(super) fn listen(address: &str) -> Result<TcpListener, String> {
    let addresses = resolve(address)?;
    let listener = TcpListener::bind(&addresses[..])
        .map_err(|error| format!("cannot listen on {address:?}: {}", reason(&error)))?;
    let nonblocking = listener.set_nonblocking(true).map(|()| listener);
    nonblocking.map_err(|error| format!("cannot listen on {address:?}: {error}"))
}

fn resolve(address: &str) -> Result<Vec<SocketAddr>, String> {
    let expected = || format!("{address:?} is not an address, expected HOST:PORT or PORT");
    let (host, port) = address.rsplit_once(':').unwrap_or(("", address));
    let port: u16 = match port.parse() {
        Ok(port) => port,
        Err(_) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            return Err(format!(
                "{address:?}: {port} is not a port, expected HOST:PORT or PORT with a port up to 65535"
            ));
        }
        Err(_) => return Err(expected()),
    };
    match host {
        "" => Ok(vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)]),
        // `::1:9977` would be ambiguous.
        host if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) => Err(expected()),
        _ => match address.to_socket_addrs() {
            Ok(found) => Ok(found.collect()),
            Err(error) => Err(format!("{address:?}: cannot look up the host: {error}")),
        },
    }
}

/// The error as text, with advice if the remedy is not obvious.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "another program uses this port, choose another port or 0 for any".into()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_host_is_loopback() {
        for address in ["9977", ":9977", "127.0.0.1:9977"] {
            assert_eq!(resolve(address), Ok(vec!["127.0.0.1:9977".parse().unwrap()]), "{address}");
        }
        assert_eq!(resolve("[::1]:80"), Ok(vec!["[::1]:80".parse().unwrap()]));
        assert!(resolve("0.0.0.0:0").unwrap()[0].ip().is_unspecified());
    }

    #[test]
    fn what_is_no_address_is_one_line_that_says_what_was_expected() {
        for address in
            ["", ":", "host", "host:", "127.0.0.1", "::1:80", "1:2:3", ":65536", "-1", "http://x:1/"]
        {
            let why = resolve(address).expect_err(address);
            assert!(why.contains("expected HOST:PORT or PORT") && !why.contains('\n'), "{why}");
        }
        for address in ["99999", "localhost:65536", "[::1]:99999999999999999999"] {
            let why = resolve(address).expect_err(address);
            assert!(
                why.ends_with("is not a port, expected HOST:PORT or PORT with a port up to 65535"),
                "{why}"
            );
        }
    }
}
