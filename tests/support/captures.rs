//! A capture that shows that all is well.

use super::kernels::chosen as kernel;
use vkaccel::{Graph, Grid, Stream};

/// Doubles 1, 2, 3 by a graph of its own.
pub fn a_good_graph_works(stream: &Stream) {
    let words = stream.upload(&[1u32, 2, 3]).unwrap();
    let mut graph = Graph::new();
    let captured = graph.capture_on(stream, || {
        assert!(stream.is_capturing());
        stream.launch(&kernel("affine"), Grid::elements(3), (&words, 2, 0, 3))
    });
    captured.unwrap();
    assert!(!stream.is_capturing());
    stream.replay(&graph).unwrap();
    assert_eq!(stream.to_vec(&words).unwrap(), [2, 4, 6]);
}
