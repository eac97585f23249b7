//! Reads a section struct: its keys, their kinds and texts, nested structs and choices included.
//!
//! It knows the few shapes a section has (numbers, texts, lists, choices, tables) and refuses any other, so that no
//! key can be described wrongly.

use anyhow::{Context as _, Result, bail};
use syn::{Attribute, Expr, ExprLit, GenericArgument, Item, Lit, Meta, PathArguments, Type};

/// One key of the configuration.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its place: section, key, and for tables in lists their keys.
    pub(crate) path: String,
    /// What it holds.
    pub(crate) kind: String,
    /// For a choice: each with its text.
    pub(crate) choices: Vec<(String, String)>,
    /// Its text.
    pub(crate) doc: String,
}

/// Adds the keys of a struct in `text`, below `prefix`.
pub(crate) fn read(text: &str, name: &str, prefix: &str, keys: &mut Vec<Key>) -> Result<()> {
    let file = syn::parse_file(text)?;
    read_struct(&file, name, prefix, keys)
}

fn read_struct(file: &syn::File, name: &str, prefix: &str, keys: &mut Vec<Key>) -> Result<()> {
    let found = file.items.iter().find_map(|item| match item {
        Item::Struct(found) if found.ident == name => Some(found),
        _ => None,
    });
    let found = found.with_context(|| format!("no struct or enum {name} there"))?;
    for field in &found.fields {
        if serde_word(&field.attrs, "skip") {
            continue;
        }
        let own_name = field
            .ident
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let name = serde_value(&field.attrs, "rename").unwrap_or(own_name);
        let path = if prefix.is_empty() {
            name
        } else {
            format!("{prefix}.{name}")
        };
        let doc = doc(&field.attrs);
        if doc.is_empty() {
            bail!("{path} has no doc comment");
        }
        let mut choices = Vec::new();
        let mut nested = Vec::new();
        let kind = kind(file, &field.ty, &path, &mut choices, &mut nested)?;
        keys.push(Key {
            path,
            kind,
            choices,
            doc,
        });
        keys.append(&mut nested);
    }
    Ok(())
}

fn kind(
    file: &syn::File,
    ty: &Type,
    path: &str,
    choices: &mut Vec<(String, String)>,
    nested: &mut Vec<Key>,
) -> Result<String> {
    let Type::Path(found) = ty else {
        bail!("{path} has a type that no key may have")
    };
    let Some(last) = found.path.segments.last() else {
        bail!("{path} has no type")
    };
    let plain = match last.ident.to_string().as_str() {
        "bool" => "boolean",
        "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "usize" => "integer",
        "f64" => "number",
        "String" => "text",
        "PathBuf" => "path",
        "SocketAddr" => "address",
        outer @ ("Vec" | "Option") => {
            let PathArguments::AngleBracketed(arguments) = &last.arguments else {
                bail!("{path}: {outer} of what?");
            };
            let Some(GenericArgument::Type(inner)) = arguments.args.first() else {
                bail!("{path}: {outer} of what?");
            };
            let word = if outer == "Vec" {
                "list of"
            } else {
                "optional"
            };
            return Ok(format!(
                "{word} {}",
                kind(file, inner, path, choices, nested)?
            ));
        }
        name if choices_of(file, name, choices) => "choice",
        name => {
            read_struct(file, name, path, nested)?;
            "table"
        }
    };
    Ok(plain.to_owned())
}

/// Reads an enum's variants, if there is an enum of that name.
fn choices_of(file: &syn::File, name: &str, choices: &mut Vec<(String, String)>) -> bool {
    let found = file.items.iter().find_map(|item| match item {
        Item::Enum(found) if found.ident == name => Some(found),
        _ => None,
    });
    let Some(found) = found else { return false };
    let style = serde_value(&found.attrs, "rename_all").unwrap_or_default();
    for variant in &found.variants {
        let name = serde_value(&variant.attrs, "rename")
            .unwrap_or_else(|| renamed(&variant.ident.to_string(), &style));
        choices.push((name, doc(&variant.attrs)));
    }
    true
}

/// A variant's name in the style serde was told.
fn renamed(name: &str, style: &str) -> String {
    let separator = match style {
        "kebab-case" => "-",
        "snake_case" => "_",
        "lowercase" => return name.to_lowercase(),
        _ => return name.to_owned(),
    };
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push_str(separator);
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// The doc comment as one paragraph of text.
fn doc(attributes: &[Attribute]) -> String {
    let lines = attributes
        .iter()
        .filter(|a| a.path().is_ident("doc"))
        .filter_map(|attribute| {
            let Meta::NameValue(pair) = &attribute.meta else {
                return None;
            };
            let Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) = &pair.value
            else {
                return None;
            };
            Some(text.value().trim().to_owned())
        });
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Whether `#[serde(word)]` is there.
fn serde_word(attributes: &[Attribute], word: &str) -> bool {
    let mut found = false;
    each_serde(attributes, |name, _| found |= name == word);
    found
}

/// The text of `#[serde(name = "text")]`.
fn serde_value(attributes: &[Attribute], wanted: &str) -> Option<String> {
    let mut found = None;
    each_serde(attributes, |name, value| {
        if name == wanted {
            found = value;
        }
    });
    found
}

fn each_serde(attributes: &[Attribute], mut visit: impl FnMut(&str, Option<String>)) {
    for attribute in attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("serde"))
    {
        // What serde itself would refuse does not compile, so errors need no telling here.
        let _ = attribute.parse_nested_meta(|meta| {
            let name = meta
                .path
                .get_ident()
                .map(ToString::to_string)
                .unwrap_or_default();
            let value = match meta.value() {
                Ok(value) => Some(value.parse::<syn::LitStr>()?.value()),
                Err(_) => None,
            };
            visit(&name, value);
            Ok(())
        });
    }
}
