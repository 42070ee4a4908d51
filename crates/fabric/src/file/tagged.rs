//! Mappings in which some keys give a kind, each with a value of its own type, and the others are
//! common to all kinds.
//!
//! The mapping is read key by key, so that every value keeps its line and column: the key of a
//! kind becomes a variant of an enum, and all others go on to the struct of common keys.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::{Error as NoValue, MapAccessDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer};
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Marks the keys of kinds in a schema, until it is published.
pub(crate) const KIND: &str = "x-kind";
/// Marks an enum of which a mapping has any number of kinds, or none.
const ANY_NUMBER: &str = "x-any-number";

/// A mapping whose keys are the variants of `K`, which has one value each, and the fields of `C`.
#[derive(Clone, Debug)]
pub struct Tagged<K, C> {
    /// Kinds that are given, in the order of the file.
    pub kinds: Vec<K>,
    /// The common keys.
    pub common: C,
}

impl<'de, K: Deserialize<'de>, C: Deserialize<'de>> Deserialize<'de> for Tagged<K, C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tagged<K, C>, D::Error> {
        deserializer.deserialize_map(Mapping(PhantomData))
    }
}

struct Mapping<K, C>(PhantomData<(K, C)>);

impl<'de, K: Deserialize<'de>, C: Deserialize<'de>> Visitor<'de> for Mapping<K, C> {
    type Value = Tagged<K, C>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping: keys with values")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Tagged<K, C>, A::Error> {
        let mut kinds = Vec::new();
        let key = Key { kinds: names::<K>(), common: names::<C>() };
        let rest = Rest { map, key, kinds: &mut kinds };
        let common = C::deserialize(MapAccessDeserializer::new(rest))?;
        Ok(Tagged { kinds, common })
    }
}

/// The common keys of a mapping; the kinds are taken out on the way.
struct Rest<'a, A, K> {
    map: A,
    key: Key,
    kinds: &'a mut Vec<K>,
}

impl<'de, A: MapAccess<'de>, K: Deserialize<'de>> MapAccess<'de> for Rest<'_, A, K> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        while let Some(key) = self.map.next_key_seed(&self.key)? {
            if self.key.common.contains(&key.as_str()) {
                return seed.deserialize(key.into_deserializer()).map(Some);
            }
            self.kinds.push(self.map.next_value_seed(Kind(key, PhantomData))?);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Reads the value of a kind's key.
struct Kind<K>(String, PhantomData<K>);

impl<'de, K: Deserialize<'de>> DeserializeSeed<'de> for Kind<K> {
    type Value = K;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K, D::Error> {
        let one = One { key: Some(self.0), value: Some(deserializer) };
        K::deserialize(MapAccessDeserializer::new(one))
    }
}

/// A mapping of one key.
struct One<D> {
    key: Option<String>,
    value: Option<D>,
}

impl<'de, D: Deserializer<'de>> MapAccess<'de> for One<D> {
    type Error = D::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, D::Error> {
        self.key.take().map(|key| seed.deserialize(key.into_deserializer())).transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, D::Error> {
        seed.deserialize(self.value.take().ok_or_else(|| D::Error::custom("there is no value"))?)
    }
}

/// Reads a key, and refuses unknown ones.
struct Key {
    kinds: &'static [&'static str],
    common: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for &Key {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let key = String::deserialize(deserializer)?;
        let all = self.common.iter().chain(self.kinds).copied();
        if all.clone().any(|name| name == key) {
            return Ok(key);
        }
        let known = all.collect::<Vec<_>>().join(", ");
        Err(D::Error::custom(format!("unknown key `{key}`; expected one of {known}")))
    }
}

/// Finds the names of the variants of an enum, or of the fields of a struct.
struct Names<'a>(&'a mut &'static [&'static str]);

/// Returns the names of the variants of an enum, or of the fields of a struct.
pub(crate) fn names<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    // It only asks for its names, and then gets no value.
    let _ = T::deserialize(Names(&mut names));
    names
}

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = NoValue;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
        Err(NoValue::custom("there is none"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NoValue> {
        *self.0 = names;
        self.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NoValue> {
        self.deserialize_enum(name, names, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

impl<K: JsonSchema, C: JsonSchema> JsonSchema for Tagged<K, C> {
    fn schema_name() -> Cow<'static, str> {
        C::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{}+{}", C::schema_id(), K::schema_id()).into()
    }

    /// Returns one object with the keys of all kinds beside the common ones.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = C::json_schema(generator);
        let kinds = K::json_schema(generator);
        let properties = schema.ensure_object().entry("properties");
        let properties = properties.or_insert_with(|| Value::Object(Default::default()));
        for kind in kinds.get("oneOf").and_then(Value::as_array).into_iter().flatten() {
            let keys = kind.get("properties").and_then(Value::as_object);
            for (key, value) in keys.into_iter().flatten() {
                let mut value = value.clone();
                value["description"] = kind["description"].clone();
                if kinds.get(ANY_NUMBER).is_none() {
                    value[KIND] = true.into();
                }
                properties[key] = value;
            }
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_kind_is_read_with_its_place() {
        let parse = |fault: &str| {
            let text =
                format!("name: a\ntopology: {{ ring: {{ switches: 3 }} }}\nfaults: [{fault}]");
            crate::parse("a".as_ref(), &text).map_err(|error| error.to_string())
        };
        assert_eq!(parse("{ at: 1s, crash: s1 }").unwrap().faults.len(), 1);
        for (fault, expected) in [
            ("{ at: 1s, loss_ppm: x, crash: s1 }", "a:3:30: faults[0].loss_ppm: the value does"),
            ("{ at: 1s, crsh: s1 }", "a:3:20: faults[0].crsh: unknown key `crsh`; expected one of"),
        ] {
            let error = parse(fault).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
