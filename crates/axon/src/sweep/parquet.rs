//! The table as Parquet: one row group without compression, every column optional.
//!
//! Whole numbers are INT64, decimals DOUBLE, texts BYTE_ARRAY as UTF8. A file contains nothing of
//! the machine or the time, so that equal tables give equal bytes.

use super::table::{Cell, Kind, Table};
use anyhow::{Context, Result, bail};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Returns the contents of the file.
///
/// # Errors
/// Two columns have one name, or memory is short.
pub(crate) fn file(table: &Table) -> Result<Vec<u8>> {
    write(table).context("the table as Parquet")
}

fn write(table: &Table) -> Result<Vec<u8>> {
    let properties = WriterProperties::builder()
        .set_created_by(concat!("axon ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::UNCOMPRESSED)
        .build();
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema(table)?, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (index, (name, kind)) in table.columns.iter().enumerate() {
        let Some(mut column) = group.next_column()? else { bail!("{name}: no such column") };
        let cells = table.rows.iter().map(|row| &row[index]);
        match kind {
            Kind::Whole => put::<Int64Type>(&mut column, cells, |cell| match cell {
                Cell::Whole(number) => Some(*number),
                _ => None,
            })?,
            Kind::Decimal => put::<DoubleType>(&mut column, cells, |cell| match cell {
                Cell::Decimal(number, _) => Some(*number),
                _ => None,
            })?,
            Kind::Text => put::<ByteArrayType>(&mut column, cells, |cell| match cell {
                Cell::Empty => None,
                other => Some(ByteArray::from(other.text().into_bytes())),
            })?,
        }
        column.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

fn schema(table: &Table) -> Result<TypePtr> {
    let field = |(name, kind): &(String, Kind)| -> Result<TypePtr> {
        let (physical, logical) = match kind {
            Kind::Whole => (Physical::INT64, None),
            Kind::Decimal => (Physical::DOUBLE, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        Ok(Arc::new(field.build()?))
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder("run").with_fields(fields).build()?))
}

/// Writes a column: the values that exist, and for each cell whether it has one.
fn put<'a, T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        let value = value(cell);
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    Ok(())
}
