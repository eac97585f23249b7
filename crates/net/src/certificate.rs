//! Names in the certificate of a client, by which access rules and AUTHINFO SASL EXTERNAL know it; and what to do about certificates
//! that are not taken.
//!
//! Of names only what the handshake has verified is read here.  What is no text of names is left out; nothing here is believed that
//! the authority did not sign.

use std::io;

use rustls::CertificateError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_cert::Certificate;
use x509_cert::der::asn1::{Any, ObjectIdentifier};
use x509_cert::der::{Decode as _, Tag, Tagged as _};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, SubjectAltName};

/// The attribute commonName (X.520).
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// The names of a certificate: its subject's common names, then the mail addresses and host names of its subjectAltName.
pub(crate) fn names_of(der: &[u8]) -> Vec<String> {
    let Ok(certificate) = Certificate::from_der(der) else {
        return Vec::new();
    };
    let known = &certificate.tbs_certificate;
    let parts = known.subject.0.iter().flat_map(|part| part.0.iter());
    let common = parts.filter(|part| part.oid == COMMON_NAME);
    let common = common.filter_map(|part| text_of(&part.value));
    let other = match known.get::<SubjectAltName>() {
        Ok(Some((_, names))) => names.0,
        Ok(None) | Err(_) => Vec::new(),
    };
    let other = other.into_iter().filter_map(|name| match name {
        GeneralName::Rfc822Name(name) | GeneralName::DnsName(name) => Some(name.to_string()),
        _ => None,
    });
    let all = common.chain(other);
    all.filter(|name| !name.is_empty() && !name.contains(char::is_control))
        .collect()
}

/// What to do about a certificate of an authority that is shown as somebody's own.
const OF_AN_AUTHORITY: &str = "; it is the certificate of an authority (CA:TRUE), and as a server's or a client's own such a one is not \
     believed: make it anew with `openssl req -x509 -addext basicConstraints=critical,CA:FALSE` and the options that it was made with, or have \
     the authority issue one";

/// Whether the first certificate of a text in PEM is one of an authority: many do not believe it as a server's own.
#[must_use]
pub fn is_of_an_authority(pem: &[u8]) -> bool {
    let first = CertificateDer::from_pem_slice(pem);
    let certificate = first.map(|der| Certificate::from_der(&der));
    let Ok(Ok(certificate)) = certificate else {
        return false;
    };
    let found = certificate.tbs_certificate.get::<BasicConstraints>();
    found.is_ok_and(|found| found.is_some_and(|(_, constraints)| constraints.ca))
}

/// What to do about a handshake that failed for a certificate, if that is known.
#[must_use]
pub fn advice(error: &io::Error) -> &'static str {
    let inner = error.get_ref().and_then(|it| it.downcast_ref());
    let Some(rustls::Error::InvalidCertificate(why)) = inner else {
        return "";
    };
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "; the authority that issued it is not believed here: give the file of its certificate as the authority"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "; it has to be renewed, if the clock here is right"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "; use a name that is in it, or have it made for this one"
        }
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            OF_AN_AUTHORITY
        }
        _ => "",
    }
}

/// A value that is a string of the kinds in use.
fn text_of(value: &Any) -> Option<String> {
    let is_text = matches!(
        value.tag(),
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String
    );
    let text = std::str::from_utf8(value.value()).ok()?;
    is_text.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, DnValue, KeyPair, SanType};

    use super::*;

    fn names(common: &[DnValue], other: Vec<SanType>) -> Vec<String> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for name in common {
            params
                .distinguished_name
                .push(DnType::CommonName, name.clone());
        }
        params.subject_alt_names = other;
        let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        names_of(made.der())
    }

    #[test]
    fn names_stand_in_order() {
        let dns = SanType::DnsName("News.peer.example".try_into().unwrap());
        let mail = SanType::Rfc822Name("ada@a.example".try_into().unwrap());
        let address = SanType::IpAddress("192.0.2.1".parse().unwrap());
        let common = DnValue::Utf8String("J\u{e9}r\u{f4}me".to_owned());
        let found = names(&[common], vec![dns, address, mail]);
        assert_eq!(
            found,
            ["J\u{e9}r\u{f4}me", "News.peer.example", "ada@a.example"]
        );
        let printable = DnValue::PrintableString("ada".try_into().unwrap());
        assert_eq!(names(&[printable], Vec::new()), ["ada"]);
    }

    #[test]
    fn authorities_are_told_from_others() {
        let made = |is_ca| {
            let mut params = CertificateParams::default();
            params.is_ca = is_ca;
            let made = params.self_signed(&KeyPair::generate().unwrap());
            is_of_an_authority(made.unwrap().pem().as_bytes())
        };
        let authority = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        assert!(made(authority));
        assert!(!made(rcgen::IsCa::ExplicitNoCa) && !made(rcgen::IsCa::NoCa));
        assert!(!is_of_an_authority(b"nothing"));
    }

    #[test]
    fn what_is_no_name_is_left_out() {
        let wide = DnValue::BmpString("ada".try_into().unwrap());
        assert!(names(&[wide], Vec::new()).is_empty());
        for bad in ["", "a\0b", "a\r\nb"] {
            let common = DnValue::Utf8String(bad.to_owned());
            assert!(names(&[common], Vec::new()).is_empty(), "{bad:?}");
        }
        for der in [&b""[..], b"\x30", b"\x30\x80\x00\x00", &[0x30; 99]] {
            assert!(names_of(der).is_empty(), "{der:?}");
        }
    }
}
