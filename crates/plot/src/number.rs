//! Formatting of numbers for plots and tables.

/// Formats a number with five significant digits and without trailing zeros.
pub fn number_text(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e15).contains(&size) {
        return format!("{number:.3e}");
    }
    let digits = if size >= 1.0 { 4 - (size.log10() as i32).clamp(0, 4) } else { 5 };
    let text = format!("{number:.*}", digits as usize);
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
