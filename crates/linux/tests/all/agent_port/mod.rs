//! Agent ports: both sides of the shared memory, and agents that corrupt it.

mod carries;
mod floods;
mod hostile;
mod python;
mod rogue;
mod short;
mod slow;
mod stops;
mod support;
mod switch;

use crate::runner::Test;

/// Names each test after its function.
macro_rules! tests {
    ($($module:ident: $($name:ident)+;)+) => {
        &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name)),+),+]
    };
}

pub const TESTS: &[Test] = tests! {
    carries:
        a_payload_that_stays_does_not_move_and_only_heads_are_copied
        without_payload_caching_the_whole_frame_crosses_twice
        heads_become_longer_and_shorter_in_front_of_a_payload_that_stays
        a_payload_is_fetched_in_part_and_only_as_far_as_it_goes
        more_is_fetched_than_the_agent_has_buffers
        a_payload_is_replaced_and_frames_of_the_agents_own_are_sent
        a_port_without_room_is_busy_or_drops_and_counts
        packets_are_answered_in_any_order_and_dropped_ones_are_gone
        a_paused_port_takes_nothing_from_its_agent_and_gives_it_no_flow_control_frames
        a_second_agent_one_of_another_version_and_what_is_no_agent_are_refused_with_the_reason
        what_was_fetched_of_a_packet_does_not_come_once_the_packet_was_decided_on
        answers_to_what_is_not_held_take_no_room_from_other_answers;
    floods:
        what_is_fetched_beyond_the_bytes_of_one_round_waits_its_turn_with_what_is_behind_it
        long_frames_of_an_agents_own_come_in_several_rounds
        what_an_agent_leaves_behind_comes_in_rounds_too_and_then_it_is_detached
        what_an_agent_leaves_behind_waits_while_its_port_is_paused
        between_an_agent_and_the_next_one_the_node_sees_no_carrier
        an_agent_that_fetches_and_does_not_read_is_detached_when_its_ring_is_full
        an_agent_that_always_has_answers_does_not_keep_its_packets_from_expiring
        what_was_answered_in_time_is_sent_however_late_the_switch_reads_it
        after_each_agent_that_breaks_the_protocol_the_next_one_waits_and_is_attached
        an_agent_that_attaches_over_and_over_does_not_fill_the_log;
    hostile:
        what_no_agent_writes_detaches_it_and_the_next_one_works
        an_unknown_kind_and_cursors_that_cannot_be_detach
        forged_handles_and_second_answers_send_nothing_and_cost_others_nothing
        a_frame_longer_than_the_longest_is_refused_and_its_buffers_come_back
        a_frame_that_is_too_long_for_an_agent_is_not_given_to_it
        what_is_fetched_beyond_the_end_of_a_frame_is_what_there_is
        random_memory_ends_in_a_detached_agent_or_in_packets_of_its_own
        an_agent_that_dies_loses_what_it_held_and_what_it_had_answered_is_sent
        an_agent_that_does_not_read_is_detached_and_its_buffers_come_back
        a_packet_that_is_held_for_too_long_expires_and_its_late_answer_is_refused
        an_agent_that_reads_some_packets_and_then_no_more_is_detached
        while_a_port_is_paused_no_packet_expires
        an_agent_that_reads_and_never_answers_is_detached_when_it_has_all_there_is;
    python:
        an_agent_in_python_uses_every_call
        a_forger_gets_nothing_of_what_it_was_not_given_and_is_detached_for_what_cannot_be
        an_agent_that_raises_ends_with_its_traceback_and_its_packets_are_counted
        the_program_of_the_page_does_what_it_says
        a_live_switch_carries_frames_through_an_agent_in_python;
    short:
        frames_of_no_byte_up_to_13_end_once_in_every_data_plane;
    slow:
        an_agent_that_reads_one_packet_after_the_other_is_no_stalled_one_however_many_wait
        the_runner_shows_what_a_slow_agent_has_read_and_answered_in_time
        an_agent_that_never_sleeps_sees_that_its_switch_has_gone;
    stops:
        an_agent_that_splices_what_wakes_it_into_a_full_terminal_does_not_stop_its_switch
        files_that_agents_send_are_not_closed_by_the_thread_of_the_switch
        while_too_many_sockets_cannot_be_closed_nobody_is_accepted;
    switch:
        packets_pass_through_an_agent_that_sleeps_between_them
        the_port_of_an_agent_that_takes_no_packets_is_busy_and_all_come_when_it_does
        agents_that_die_or_stall_under_load_lose_their_own_packets_and_others_lose_none;
};
