//! Proving to the server who we are, and letting it prove that it knows us.

use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;

use crate::address::{Address, Auth, Binding};
use crate::binding::end_point;
use crate::connection::Connection;
use crate::error::Error;
use crate::password::Password;

/// What a server that offers too little has to be told.
const USE_SCRAM: &str = "set scram-sha-256 for this user in the server's pg_hba.conf";

/// Introduces the client, lets both sides prove what the address asks for, and waits until the server is ready.
pub(crate) fn login(connection: &mut Connection, address: &Address) -> Result<(), Error> {
    let parameters = [
        ("user", address.user.as_str()),
        ("database", &address.database),
        ("application_name", "ikigai"),
        ("client_encoding", "UTF8"),
    ];
    frontend::startup_message(parameters, &mut connection.output)?;
    connection.send()?;
    authenticate(connection, address)?;
    loop {
        match connection.message()? {
            Message::BackendKeyData(body) => connection.process = body.process_id(),
            Message::ReadyForQuery(_) => return Ok(()),
            Message::ErrorResponse(body) => return Err(connection.refusal(&body)),
            _ => return Err(Error::protocol("not a step of a login")),
        }
    }
}

/// One exchange of a kind that is accepted, and the server's word that it lets us in. A server that asks for more, or
/// says so before the exchange, is not the one that was meant.
fn authenticate(connection: &mut Connection, address: &Address) -> Result<(), Error> {
    match connection.message()? {
        Message::AuthenticationOk => return require_no_proof(address),
        Message::AuthenticationSasl(body) => {
            let password = accepted(address, Auth::Scram, NO_SCRAM)?;
            prove(connection, &body, password, address.channel_binding)?;
        }
        Message::AuthenticationCleartextPassword => {
            let password = accepted(address, Auth::Password, NO_CLEAR_TEXT)?;
            // Whoever holds a port of this machine would be given it, were it not for the certificate.
            connection.certificate().ok_or(NO_CLEAR_TEXT_HERE)?;
            frontend::password_message(password.as_bytes(), &mut connection.output)?;
            connection.send()?;
        }
        Message::AuthenticationMd5Password(body) => {
            let password = accepted(address, Auth::Md5, NO_MD5)?;
            let hash = md5_hash(address.user.as_bytes(), password.as_bytes(), body.salt());
            frontend::password_message(hash.as_bytes(), &mut connection.output)?;
            connection.send()?;
        }
        Message::ErrorResponse(body) => return Err(connection.refusal(&body)),
        Message::AuthenticationGss
        | Message::AuthenticationKerberosV5
        | Message::AuthenticationSspi => {
            let reason = "the server wants a Kerberos login, which ikigai cannot do";
            return Err(Error::Login { reason, advice: USE_SCRAM });
        }
        _ => return Err(Error::protocol("not a step of a login")),
    }
    match connection.message()? {
        Message::AuthenticationOk => Ok(()),
        Message::ErrorResponse(body) => Err(connection.refusal(&body)),
        _ => Err(Error::protocol("not a step of a login")),
    }
}

const NO_SCRAM: Error = Error::Login {
    reason: "the server asks for a login with scram-sha-256, which require_auth in the address leaves out",
    advice: "add scram-sha-256 to require_auth, or take require_auth away",
};
const NO_CLEAR_TEXT: Error = Error::Login {
    reason: "the server asks for the password in clear text, and ikigai does not send it",
    advice: "set scram-sha-256 for this user in the server's pg_hba.conf; or, if the connection has TLS, add \
             require_auth=password to the address",
};
const NO_CLEAR_TEXT_HERE: Error = Error::Login {
    reason: "the server asks for the password in clear text, and the connection has no TLS",
    advice: "set scram-sha-256 for this user in the server's pg_hba.conf, or add sslmode=require to the address",
};
const NO_MD5: Error = Error::Login {
    reason: "the server asks for an MD5 login, which protects the password too little",
    advice: "set the password again with password_encryption = 'scram-sha-256' on the server, and scram-sha-256 for \
             this user in its pg_hba.conf; or add require_auth=md5 to the address",
};

const NO_SIGNATURE: Error = Error::Login {
    reason: "the server could not prove that it knows the password",
    advice: "check that the address names your server: another program may listen there",
};

/// Refuses a server that would keep us busy: how often the password is hashed is its choice, up to four billion times.
fn require_bounded_work(step: &[u8]) -> Result<(), Error> {
    /// Takes a few seconds. PostgreSQL's own default is 4,096, and the highest that is recommended anywhere is 600,000.
    const MOST: u64 = 10_000_000;
    let text = String::from_utf8_lossy(step);
    let count = text.split(',').find_map(|field| field.strip_prefix("i=")?.parse::<u64>().ok());
    match count {
        Some(count) if count > MOST => Err(Error::Login {
            reason: "the server wants the password to be hashed more than 10 million times",
            advice: "lower scram_iterations on the server and set the password again",
        }),
        Some(_) | None => Ok(()),
    }
}

/// The password, if the address has one and accepts this kind of login.
fn accepted(address: &Address, auth: Auth, otherwise: Error) -> Result<&Password, Error> {
    let password = address.password.as_ref().ok_or(Error::Login {
        reason: "the server wants a password, and the address has none",
        advice: "give user and password: postgres://USER:PASSWORD@HOST/NAME",
    })?;
    if address.accepts(auth) { Ok(password) } else { Err(otherwise) }
}

/// A server that lets us in without a question may be any: whoever holds the port can say so.
fn require_no_proof(address: &Address) -> Result<(), Error> {
    match (address.accepts(Auth::None), &address.password) {
        (true, _) => Ok(()),
        (false, Some(_)) => Err(Error::Login {
            reason: "the server did not ask for the password, so it has not proven to be yours",
            advice: "set scram-sha-256 for this user in the server's pg_hba.conf, or, if you trust it without, take \
                     the password out of the address",
        }),
        (false, None) => Err(Error::Login {
            reason: "the server did not ask for the login that require_auth in the address wants",
            advice: USE_SCRAM,
        }),
    }
}

/// Shows that both sides know the password, without sending it: the server's signature is checked.
fn prove(
    connection: &mut Connection,
    body: &AuthenticationSaslBody,
    password: &Password,
    binding: Binding,
) -> Result<(), Error> {
    let offered: Vec<&str> = body.mechanisms().collect()?;
    let end_point = match binding {
        Binding::Disabled => None,
        Binding::Preferred | Binding::Required => connection.certificate().and_then(end_point),
    };
    let (mechanism, channel) = match end_point {
        Some(end_point) if offered.contains(&SCRAM_SHA_256_PLUS) => {
            (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(end_point))
        }
        // Says that we could: a server that could as well, and whose offer was changed on the way, then refuses.
        Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
        None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
    };
    if binding == Binding::Required && mechanism != SCRAM_SHA_256_PLUS {
        return Err(Error::Login {
            reason: "the login cannot be bound to the server's certificate, which channel_binding=require wants",
            advice: "use TLS and a certificate signed with SHA-256 or SHA-384, or take channel_binding away",
        });
    }
    if !offered.contains(&mechanism) {
        let reason = "the server offers no login with scram-sha-256";
        return Err(Error::Login { reason, advice: USE_SCRAM });
    }
    let mut proof = ScramSha256::new(password.as_bytes(), channel);
    frontend::sasl_initial_response(mechanism, proof.message(), &mut connection.output)?;
    connection.send()?;
    loop {
        match connection.message()? {
            Message::AuthenticationSaslContinue(body) => {
                require_bounded_work(body.data())?;
                proof.update(body.data())?;
                frontend::sasl_response(proof.message(), &mut connection.output)?;
                connection.send()?;
            }
            Message::AuthenticationSaslFinal(body) => {
                return proof.finish(body.data()).map_err(|_| NO_SIGNATURE);
            }
            Message::ErrorResponse(body) => return Err(connection.refusal(&body)),
            _ => return Err(Error::protocol("not a step of a login")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;
    use crate::client::Client;

    const OK: &[u8] = b"R\0\0\0\x08\0\0\0\0";
    const READY: &[u8] = b"Z\0\0\0\x05I";
    const CLEAR_TEXT: &[u8] = b"R\0\0\0\x08\0\0\0\x03";
    const MD5: &[u8] = b"R\0\0\0\x0c\0\0\0\x05salt";
    const SCRAM: &[u8] = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0";

    /// What a login came to with a server that says these one after another, each behind something that it was told.
    /// The second is all that it was told.
    fn log_in(options: &str, script: Vec<Say>) -> (Result<(), Error>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut told = Vec::new();
            for say in script {
                let heard = hear(&mut client);
                client.write_all(&say(&heard)).unwrap();
                told.extend(heard);
            }
            drop(listener);
            let _ = client.shutdown(std::net::Shutdown::Write);
            let _ = client.read_to_end(&mut told);
            told
        });
        let address = format!("postgres://me:geheim@127.0.0.1:{port}/w?connect_timeout=5{options}");
        let connected = Client::connect(&Address::parse(&address).unwrap());
        (connected.map(drop), server.join().unwrap())
    }

    /// What a server says to what it heard.
    type Say = Box<dyn FnOnce(&[u8]) -> Vec<u8> + Send>;

    fn say(message: &'static [u8]) -> Say {
        Box::new(move |_| message.to_vec())
    }

    fn hear(client: &mut TcpStream) -> Vec<u8> {
        let mut heard = vec![0; 4096];
        let length = client.read(&mut heard).unwrap();
        heard.truncate(length);
        heard
    }

    /// A step of a proof, as a server sends it.
    fn step(code: u8, text: &str) -> Vec<u8> {
        let length = u32::try_from(8 + text.len()).unwrap().to_be_bytes();
        [b"R".as_slice(), &length, &[0, 0, 0, code], text.as_bytes()].concat()
    }

    /// Goes on with the client's proof, whose number is its own with more behind it.
    fn go_on() -> Say {
        go_on_with(4096)
    }

    fn go_on_with(iterations: u32) -> Say {
        Box::new(move |heard| {
            let heard = String::from_utf8_lossy(heard);
            let nonce = heard.split("r=").nth(1).unwrap().to_owned();
            step(11, &format!("r={nonce}more,s=c2FsdA==,i={iterations}"))
        })
    }

    /// Refused with this text, and the server knows nothing but who asks.
    #[track_caller]
    fn refuse(options: &str, script: Vec<Say>, expected: &str) {
        let (refused, told) = log_in(options, script);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
        let told = String::from_utf8_lossy(&told).into_owned();
        assert!(told.contains("client_encoding"), "{told}");
        assert!(!told.contains("geheim") && !told.contains("md5"), "{told}");
        assert!(!told.contains("pg_backend_pid"), "nothing is asked: {told}");
    }

    /// Whoever held the port was given the password.
    #[test]
    fn a_server_that_wants_less_than_a_proof_is_told_nothing() {
        refuse("", vec![say(CLEAR_TEXT)], "the password in clear text");
        refuse("", vec![say(MD5)], "an MD5 login");
        let options = "&require_auth=md5,none";
        refuse(options, vec![say(CLEAR_TEXT)], "the password in clear text");
        refuse(options, vec![say(SCRAM)], "require_auth in the address leaves out");
        let options = "&require_auth=password";
        refuse(options, vec![say(CLEAR_TEXT)], "the connection has no TLS");
        refuse(options, vec![say(MD5)], "an MD5 login");
    }

    #[test]
    fn a_server_that_proves_nothing_is_not_believed() {
        refuse("", vec![say(OK)], "did not ask for the password");
        refuse("", vec![say(READY)], "not a step of a login");
        refuse("", vec![say(b"K\0\0\0\x0c\0\0\0\x07\0\0\0\0")], "not a step of a login");
        refuse("", vec![say(SCRAM), say(OK)], "not a step of a login");
        refuse("", vec![say(SCRAM), say(CLEAR_TEXT)], "not a step of a login");
        refuse("", vec![say(SCRAM), go_on(), say(OK)], "not a step of a login");
        let wrong = Box::new(|_: &[u8]| step(12, "v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="));
        refuse("", vec![say(SCRAM), go_on(), wrong], "could not prove that it knows the password");
        let none = Box::new(|_: &[u8]| step(12, ""));
        refuse("", vec![say(SCRAM), go_on(), none], "could not prove that it knows the password");
        refuse("", vec![say(SCRAM), go_on_with(u32::MAX)], "more than 10 million times");
        refuse("&channel_binding=require", vec![say(SCRAM)], "channel_binding=require wants");
    }

    #[test]
    fn what_the_address_asks_for_is_given() {
        let (_, told) = log_in("&require_auth=md5", vec![say(MD5)]);
        assert!(String::from_utf8_lossy(&told).contains("md5"));
        let let_in = Box::new(|_: &[u8]| [OK, READY].concat());
        let (_, told) = log_in("&require_auth=none", vec![let_in]);
        assert!(String::from_utf8_lossy(&told).contains("pg_backend_pid"));
    }

    #[test]
    fn a_text_of_the_server_does_not_show_the_password() {
        let refusal = |text: &str| {
            let fields = format!("SFATAL\0C28P01\0M{text}\0\0");
            let length = u32::try_from(4 + fields.len()).unwrap().to_be_bytes();
            [b"E".as_slice(), &length, fields.as_bytes()].concat()
        };
        for (text, shown) in [
            ("no geheim here".to_owned(), "no *** here".to_owned()),
            ("me:%67eheim@h".to_owned(), "me:***@h".to_owned()),
            // Cut in its middle, half of it would be left.
            (format!("{}geheim", "x".repeat(297)), format!("{}***", "x".repeat(297))),
            (format!("{}geheim", "x".repeat(298)), format!("{}**", "x".repeat(298))),
        ] {
            let message = refusal(&text);
            let (refused, _) = log_in("", vec![Box::new(move |_| message)]);
            let refused = refused.unwrap_err();
            assert_eq!(refused.to_string(), shown);
            assert!(!format!("{refused:?}").contains("geh"), "{refused:?}");
        }
        let said = Box::new(|_: &[u8]| step(11, "geheim"));
        let (refused, _) = log_in("", vec![say(SCRAM), said]);
        let refused = refused.unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("geheim"), "{refused}");
    }
}
