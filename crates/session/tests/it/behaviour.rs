//! What transcripts cannot say: order of answers held back, draining, memory of idle sessions.
