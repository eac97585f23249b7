//! What tidy wants to know about one Rust file: its production lines, its functions, where it says `unsafe`.
//!
//! A real parser looks at the file, so strings and comments never confuse a rule.  Nothing here judges.

use anyhow::{Result, anyhow};
use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::Visit;

/// One function of production code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// The line it begins on.
    pub(crate) line: usize,
    /// Its lines, from the signature to the closing brace.
    pub(crate) lines: usize,
}

/// The facts of one file.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// Lines outside test modules.
    pub(crate) production_lines: usize,
    /// Functions outside test modules.
    pub(crate) functions: Vec<Function>,
    /// Lines with the keyword `unsafe`.
    pub(crate) unsafe_lines: Vec<usize>,
}

impl Source {
    /// Looks at one file.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let file = syn::parse_file(text)
            .map_err(|error| anyhow!("line {}: {error}", error.span().start().line))?;
        let mut visitor = Visitor::default();
        visitor.visit_file(&file);
        let mut unsafe_lines = Vec::new();
        let tokens: TokenStream = text
            .parse()
            .map_err(|error| anyhow!("cannot be split into tokens: {error}"))?;
        find_unsafe(tokens, &mut unsafe_lines);
        Ok(Self {
            production_lines: text.lines().count().saturating_sub(visitor.test_lines),
            functions: visitor.functions,
            unsafe_lines,
        })
    }
}

/// Whether an attribute is `#[cfg(test)]` or `#[test]`.
fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Path>()
                .is_ok_and(|path| path.is_ident("test"))
    })
}

fn attributes_of(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Const(item) => &item.attrs,
        _ => &[],
    }
}

fn lines_of(span: Span) -> usize {
    span.end().line + 1 - span.start().line
}

#[derive(Default)]
struct Visitor {
    functions: Vec<Function>,
    test_lines: usize,
}

impl Visitor {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let line = signature.fn_token.span.start().line;
        let lines = block.span().end().line + 1 - line;
        self.functions.push(Function {
            name: signature.ident.to_string(),
            line,
            lines,
        });
    }
}

impl<'ast> Visit<'ast> for Visitor {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if is_test_only(attributes_of(item)) {
            self.test_lines += lines_of(item.span());
        } else {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_test_only(&item.attrs) {
            self.test_lines += lines_of(item.span());
            return;
        }
        self.add(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

fn find_unsafe(tokens: TokenStream, lines: &mut Vec<usize>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => find_unsafe(group.stream(), lines),
            TokenTree::Ident(word) if word == "unsafe" => lines.push(word.span().start().line),
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_not_production_and_strings_are_not_code() {
        let text = "//! Header.\n\
                    fn one() {\n    let _ = \"unsafe }\";\n}\n\
                    struct S;\n\
                    impl S {\n    fn two(&self) {}\n    #[cfg(test)]\n    fn of() {}\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn three() {}\n}\n";
        let source = Source::parse(text).unwrap();
        assert_eq!(source.production_lines, 14 - 4 - 2);
        let found: Vec<_> = source
            .functions
            .iter()
            .map(|f| (f.name.as_str(), f.lines))
            .collect();
        assert_eq!(found, [("one", 3), ("two", 1)]);
        assert!(source.unsafe_lines.is_empty());
    }

    #[test]
    fn the_keyword_is_found_where_it_stands() {
        let text = "fn f() {\n    // unsafe\n    unsafe { g() }\n}\n";
        assert_eq!(Source::parse(text).unwrap().unsafe_lines, [3]);
    }

    #[test]
    fn a_file_that_is_not_rust_says_where() {
        let error = Source::parse("fn f() {}\nfn }\n").unwrap_err();
        assert!(error.to_string().starts_with("line 2"), "{error}");
    }
}
