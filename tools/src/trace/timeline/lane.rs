//! Builds one row of a picture: wide slices as they are, and slices narrower than a pixel merged. For any number of
//! slices, a lane has at most a few shapes per pixel. Merged slices are counted.

use super::view::Class;

/// A row of the picture, in pixels from its left edge.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) shapes: Vec<Shape>,
    group: Option<Group>,
    pub(super) merged: u64,
    /// The last pixel with a mark, and with a short span.
    marked: Option<i64>,
    spanned: Option<i64>,
}

/// A shape in a lane, in pixels from its left edge.
pub(super) struct Shape {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) form: Form,
    pub(super) hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    Slice(Class),
    Mark,
    Span,
}

/// Slices that begin in the same pixel.
struct Group {
    from: f64,
    to: f64,
    classes: Vec<(Class, u64)>,
    slices: u64,
}

impl Lane {
    /// Adds a slice that is narrower than a pixel.
    pub(super) fn narrow(&mut self, from: f64, to: f64, class: Class, worked_ns: u64, lost_ns: u64) {
        if self.group.as_ref().is_some_and(|group| group.from.floor() < from.floor()) {
            self.close();
        }
        let group = self.group.get_or_insert(Group { from, to, classes: Vec::new(), slices: 0 });
        group.to = group.to.max(to);
        group.slices += 1;
        for (class, ns) in [(class, worked_ns), (Class::Lost, lost_ns)] {
            match group.classes.iter_mut().find(|(other, _)| *other == class) {
                Some((_, sum_ns)) => *sum_ns += ns,
                None if ns > 0 => group.classes.push((class, ns)),
                None => {}
            }
        }
    }

    /// Ends the current group.
    pub(super) fn close(&mut self) {
        let Some(group) = self.group.take() else { return };
        if group.slices > 1 {
            self.merged += group.slices;
        }
        let Some(&(class, _)) = group.classes.iter().max_by_key(|(class, ns)| (*ns, *class)) else { return };
        let form = Form::Slice(class);
        match self.shapes.last_mut() {
            Some(last) if last.form == form && last.hint.is_none() && group.from - last.to < 0.5 => {
                last.to = last.to.max(group.to);
            }
            _ => self.shapes.push(Shape { from: group.from, to: group.to, form, hint: None }),
        }
    }

    /// Returns whether this pixel already has a mark. If it has, the next mark is merged.
    pub(super) fn has_mark(&mut self, pixel: i64) -> bool {
        let has = self.marked.replace(pixel) == Some(pixel);
        self.merged += u64::from(has);
        has
    }

    /// The same for spans narrower than a pixel.
    pub(super) fn has_span(&mut self, pixel: i64) -> bool {
        let has = self.spanned.replace(pixel) == Some(pixel);
        self.merged += u64::from(has);
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_slices_of_a_pixel_become_one_that_shows_what_took_most() {
        let mut lane = Lane::default();
        lane.narrow(3.0, 3.2, Class::Idle, 20, 0);
        lane.narrow(3.2, 3.8, Class::Runtime, 30, 30);
        lane.narrow(3.8, 3.9, Class::Idle, 15, 0);
        lane.narrow(4.5, 4.6, Class::Runtime, 10, 0);
        lane.close();
        let drawn: Vec<_> = lane.shapes.iter().map(|shape| (shape.from, shape.to, shape.form)).collect();
        assert_eq!(drawn, [(3.0, 3.9, Form::Slice(Class::Idle)), (4.5, 4.6, Form::Slice(Class::Runtime))]);
        assert_eq!(lane.merged, 3, "the last is alone in its pixel");
    }

    #[test]
    fn a_long_row_of_narrow_slices_is_one_shape() {
        let mut lane = Lane::default();
        for number in 0..10_000 {
            let from = f64::from(number) * 0.01;
            lane.narrow(from, from + 0.01, Class::Iterations, 10, 0);
        }
        lane.close();
        assert_eq!((lane.shapes.len(), lane.merged), (1, 10_000));
    }
}
