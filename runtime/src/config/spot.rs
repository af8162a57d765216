//! The setting of the cloud whose metadata service announces that it takes the machine back.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// A cloud that takes spot instances back, after a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// Amazon EC2: two minutes of notice.
    Aws,
    /// Google Compute Engine: 30 seconds.
    Gcp,
    /// Microsoft Azure: 30 seconds.
    Azure,
}

impl Cloud {
    /// All clouds.
    pub const ALL: [Cloud; 3] = [Cloud::Aws, Cloud::Gcp, Cloud::Azure];

    fn name(self) -> &'static str {
        match self {
            Cloud::Aws => "aws",
            Cloud::Gcp => "gcp",
            Cloud::Azure => "azure",
        }
    }
}

/// The metadata service that a run with checkpoints polls for the notice. By default none.
///
/// ```
/// use caribou::config::{Cloud, Spot};
/// let spot: Spot = "aws@http://127.0.0.1:8080".parse()?;
/// assert_eq!(spot, Spot::of(Cloud::Aws).at(([127, 0, 0, 1], 8080).into()));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// If there are several, the first one that answers is used.
    pub(crate) clouds: Vec<Cloud>,
    /// The address of the service, if it differs from the cloud's.
    pub(crate) address: Option<SocketAddr>,
}

impl Spot {
    /// No service is polled.
    #[must_use]
    pub fn none() -> Spot {
        Spot::default()
    }

    /// The service of this cloud.
    #[must_use]
    pub fn of(cloud: Cloud) -> Spot {
        Spot { clouds: vec![cloud], address: None }
    }

    /// The first service that answers when the run begins.
    #[must_use]
    pub fn auto() -> Spot {
        Spot { clouds: Cloud::ALL.to_vec(), address: None }
    }

    /// The same service at another address, for tests.
    #[must_use]
    pub fn at(self, address: SocketAddr) -> Spot {
        Spot { address: Some(address), ..self }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.clouds.is_empty()
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.clouds[..] {
            [] => "none",
            [cloud] => cloud.name(),
            _ => "auto",
        })?;
        self.address.map_or(Ok(()), |address| write!(f, "@http://{address}"))
    }
}

impl FromStr for Spot {
    type Err = String;

    fn from_str(text: &str) -> Result<Spot, String> {
        let wrong = || {
            format!(
                "`{text}` is not a metadata service, expected none, auto, aws, gcp or azure, for tests also \
                 aws@http://IP:PORT"
            )
        };
        let (name, address) = match text.trim().split_once('@') {
            None => (text.trim(), None),
            Some((name, url)) => (name, Some(parse_address(url).ok_or_else(wrong)?)),
        };
        let of_name = |cloud: &Cloud| cloud.name() == name;
        let spot = match (name, Cloud::ALL.into_iter().find(of_name)) {
            (_, Some(cloud)) => Spot::of(cloud),
            ("auto", _) => Spot::auto(),
            ("none", _) if address.is_none() => Spot::none(),
            _ => return Err(wrong()),
        };
        Ok(Spot { address, ..spot })
    }
}

/// Parses a numeric address. A name would need a lookup, which can take longer than the end of a run may wait.
fn parse_address(url: &str) -> Option<SocketAddr> {
    let url = url.strip_prefix("http://")?;
    url.strip_suffix('/').unwrap_or(url).parse().ok().filter(|address: &SocketAddr| address.port() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spot_setting_is_read_as_it_is_written() {
        for text in
            ["none", "auto", "aws", "gcp", "azure", "gcp@http://127.0.0.1:80", "auto@http://[::1]:8080"]
        {
            assert_eq!(text.parse::<Spot>().map(|spot| spot.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(
            " azure@http://10.0.0.1:1/ ".parse::<Spot>().map(|spot| spot.clouds),
            Ok(vec![Cloud::Azure])
        );
        for wrong in ["", "AWS", "ec2", "none@http://127.0.0.1:80", "aws@", "aws@127.0.0.1:80"] {
            assert!(wrong.parse::<Spot>().is_err(), "{wrong}");
        }
        for wrong in ["aws@https://127.0.0.1:80", "aws@http://127.0.0.1", "aws@http://localhost:80"] {
            assert!(wrong.parse::<Spot>().is_err(), "{wrong}");
        }
    }
}
