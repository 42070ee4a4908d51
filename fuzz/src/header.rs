//! Any bytes as an Axon header: no panic; what parses is written back the same; a hop that
//! is taken moves one port and changes nothing else.

use axon_node::PortKind;
use axon_plane::{Step, forward};
use axon_wire::header::{self, HeaderView, HopWidth};
use axon_wire::{Hops, PortNo};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    for width in [HopWidth::Four, HopWidth::Eight, HopWidth::Sixteen] {
        check_width(bytes, width);
    }
}

fn check_width(bytes: &[u8], width: HopWidth) {
    let mut packet = bytes.to_vec();
    let step = forward(&mut packet, width, PortNo(3), |port| match port.0 % 4 {
        0 => Some(PortKind::Host),
        1 => Some(PortKind::Unknown),
        2 => Some(PortKind::Axon),
        _ => None,
    });
    if let Step::Drop(_) = step {
        assert_eq!(packet, bytes, "a dropped packet is left as it came");
    }
    let Ok(view) = HeaderView::parse(bytes, width) else {
        return;
    };
    let (forward, reverse) = (view.forward(), view.reverse());
    let mut written = vec![0xa5; view.header_bytes()];
    let length = header::emit(&mut written, width, view.packet_type(), &forward, &reverse);
    assert_eq!(length, Ok(view.header_bytes()));
    let again = HeaderView::parse(&written, width).expect("what is written can be read");
    assert_eq!((again.forward(), again.reverse()), (forward.clone(), reverse.clone()));

    let mut taken = bytes.to_vec();
    header::advance(&mut taken, width, PortNo(3));
    let after = HeaderView::parse(&taken, width).expect("a header stays a header");
    assert_eq!(after.payload(), view.payload());
    if forward.is_empty() || reverse.len() == header::HOPS_MAX {
        assert_eq!(taken, bytes);
    } else {
        assert_eq!(after.forward(), forward[1..].iter().copied().collect::<Hops>());
        assert_eq!(after.reverse(), reverse.after(PortNo(3)));
    }
}
