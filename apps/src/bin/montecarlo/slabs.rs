//! Describes slabs one behind the other, each of one medium. They are infinite sideways, so only depth matters.

use super::energy::Energy;
use super::medium::{Medium, SUBSTANCES};
use harness::error::Error;

/// Maximum thickness of all slabs together: more than 100 m is a mistake.
const DEPTH_MAX_CM: f64 = 1e4;

/// One slab as the command line gives it: `MATERIAL[,KEY=VALUE..]:CM`, as in `water:10` or `grey,scattering=0.9:2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SlabSpec {
    /// Its material.
    pub(crate) medium: Medium,
    /// Its thickness.
    pub(crate) thickness_cm: f64,
}

impl SlabSpec {
    /// Reads a slab.
    ///
    /// # Errors
    /// A sentence that names what was expected.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some((material, thickness)) = text.rsplit_once(':') else {
            return Err("expected MATERIAL:CM as in water:10".to_owned());
        };
        let thickness_cm = thickness.parse().ok().filter(|cm| *cm > 0.0 && *cm <= DEPTH_MAX_CM);
        let thickness_cm = thickness_cm.ok_or_else(|| {
            format!("`{thickness}` is not a thickness, expected centimetres up to {DEPTH_MAX_CM}")
        })?;
        Ok(Self { medium: medium(material)?, thickness_cm })
    }
}

fn medium(text: &str) -> Result<Medium, String> {
    let (name, settings) = text.split_once(',').unwrap_or((text, ""));
    if name == "grey" {
        return grey(settings);
    }
    let substances = SUBSTANCES.map(Medium::Matter);
    match substances.into_iter().find(|substance| substance.name() == name) {
        Some(medium) if settings.is_empty() => Ok(medium),
        Some(_) => Err(format!("{name} has no settings; only grey has")),
        None => {
            let names = substances.map(|substance| substance.name()).join(", ");
            Err(format!("there is no material `{name}`: expected one of {names}, grey"))
        }
    }
}

fn grey(settings: &str) -> Result<Medium, String> {
    let (mut absorption_per_cm, mut scattering_per_cm, mut asymmetry) = (0.5, 0.5, 0.0);
    for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
        let number = setting.split_once('=').and_then(|(key, value)| Some((key, value.parse::<f64>().ok()?)));
        let target = match number {
            Some(("absorption", value)) if value > 0.0 && value <= 1e6 => &mut absorption_per_cm,
            Some(("scattering", value)) if (0.0..=1e6).contains(&value) => &mut scattering_per_cm,
            Some(("asymmetry", value)) if value.abs() < 1.0 => &mut asymmetry,
            _ => {
                return Err(format!(
                    "`{setting}`: expected absorption=PER_CM above 0, scattering=PER_CM, or asymmetry between -1 and 1"
                ));
            }
        };
        *target = number.map_or(0.0, |(_, value)| value);
    }
    Ok(Medium::Grey { absorption_per_cm, scattering_per_cm, asymmetry })
}

/// One slab and its depths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slab {
    /// Its material.
    pub(crate) medium: Medium,
    /// Its begin.
    pub(crate) from_cm: f64,
    /// Its end.
    pub(crate) to_cm: f64,
}

/// At least one slab. The first begins at depth 0, each later one where the one before ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stack {
    slabs: Vec<Slab>,
}

impl Stack {
    /// Puts slabs one behind the other.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no slab, or the slabs together are too thick.
    pub(crate) fn new(specs: &[SlabSpec]) -> Result<Self, Error> {
        let mut slabs = Vec::with_capacity(specs.len());
        let mut from_cm = 0.0;
        for spec in specs {
            let to_cm = from_cm + spec.thickness_cm;
            slabs.push(Slab { medium: spec.medium, from_cm, to_cm });
            from_cm = to_cm;
        }
        if slabs.is_empty() || from_cm > DEPTH_MAX_CM {
            return Err(Error::Usage(format!(
                "--slab: expected at least one, and {DEPTH_MAX_CM} cm at most together, not {from_cm} cm"
            )));
        }
        Ok(Self { slabs })
    }

    /// The slabs, from the source on.
    #[must_use]
    pub(crate) fn slabs(&self) -> &[Slab] {
        &self.slabs
    }

    /// The depth at which the last slab ends.
    #[must_use]
    pub(crate) fn depth_cm(&self) -> f64 {
        self.slabs.last().map_or(0.0, |slab| slab.to_cm)
    }

    /// The part of photons of this energy, arriving straight on, that pass all slabs without a collision: the exponential
    /// of minus the sum of attenuation times thickness.
    #[must_use]
    pub(crate) fn uncollided(&self, energy: Energy) -> f64 {
        let free_paths = self
            .slabs
            .iter()
            .map(|slab| slab.medium.attenuation(energy).total_per_cm() * (slab.to_cm - slab.from_cm));
        (-free_paths.sum::<f64>()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_is_a_material_and_its_thickness() {
        let lead = SlabSpec::parse("lead:1.5").unwrap();
        assert_eq!((lead.medium.name(), lead.thickness_cm), ("lead", 1.5));
        assert!(SlabSpec::parse("cheese:1").is_err());
    }

    #[test]
    fn slabs_touch() {
        let specs = ["water:10", "lead:1.5", "grey:0.5"].map(|text| SlabSpec::parse(text).unwrap());
        let stack = Stack::new(&specs).unwrap();
        let ends: Vec<_> = stack.slabs().iter().map(|slab| (slab.from_cm, slab.to_cm)).collect();
        assert_eq!(ends, [(0.0, 10.0), (10.0, 11.5), (11.5, 12.0)]);
    }

    #[test]
    fn a_grey_slab_is_what_its_settings_say() {
        let spec = SlabSpec::parse("grey,scattering=0.9,absorption=0.1,asymmetry=-0.2:3").unwrap();
        let expected = Medium::Grey { absorption_per_cm: 0.1, scattering_per_cm: 0.9, asymmetry: -0.2 };
        assert_eq!(spec, SlabSpec { medium: expected, thickness_cm: 3.0 });
    }

    #[test]
    fn an_impossible_slab_is_refused_in_words() {
        for (text, words) in [
            ("water", "MATERIAL:CM"),
            ("water:0", "not a thickness"),
            ("water:nan", "not a thickness"),
            ("water:1e5", "not a thickness"),
            ("butter:1", "water, aluminium, iron, lead, grey"),
            ("water,absorption=1:1", "no settings"),
            ("grey,absorption=0:1", "above 0"),
            ("grey,asymmetry=1:1", "asymmetry"),
            ("grey,colour=1:1", "`colour=1`"),
        ] {
            let complaint = SlabSpec::parse(text).unwrap_err();
            assert!(complaint.contains(words) && !complaint.contains('\n'), "{text}: {complaint}");
        }
        assert!(Stack::new(&[]).is_err());
        assert!(Stack::new(&[SlabSpec::parse("iron:9000").unwrap(); 2]).is_err());
    }
}
