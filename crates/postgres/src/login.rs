//! Mutual authentication: we prove our identity to the server, and it proves that it knows our password.

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

/// The advice for a server that offers only weaker methods.
const USE_SCRAM: &str = "set scram-sha-256 for this user in the server's pg_hba.conf";

/// Starts the session, authenticates as the address requires, and waits until the server is ready.
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

/// Runs one exchange with an accepted method, and waits for the server's OK. A server that asks for more, or sends
/// the OK before the exchange, is not the intended one.
fn authenticate(connection: &mut Connection, address: &Address) -> Result<(), Error> {
    match connection.message()? {
        Message::AuthenticationOk => return require_no_proof(address),
        Message::AuthenticationSasl(body) => {
            let password = accepted(address, Auth::Scram, NO_SCRAM)?;
            prove(connection, &body, password, address.channel_binding)?;
        }
        Message::AuthenticationCleartextPassword => {
            let password = accepted(address, Auth::Password, NO_CLEAR_TEXT)?;
            // Without a certificate, any program that holds the port would get the password.
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
            let reason = "the server requires a Kerberos login, which ikigai does not support";
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
    advice: "add scram-sha-256 to require_auth, or remove require_auth",
};
const NO_CLEAR_TEXT: Error = Error::Login {
    reason: "the server asks for the password in clear text, and ikigai does not send it",
    advice: "set scram-sha-256 for this user in the server's pg_hba.conf, or, if the connection uses TLS, add \
             require_auth=password to the address",
};
const NO_CLEAR_TEXT_HERE: Error = Error::Login {
    reason: "the server asks for the password in clear text, and the connection has no TLS",
    advice: "set scram-sha-256 for this user in the server's pg_hba.conf, or add sslmode=require to the address",
};
const NO_MD5: Error = Error::Login {
    reason: "the server asks for an MD5 login, which does not protect the password well enough",
    advice: "set the password again with password_encryption = 'scram-sha-256' on the server and set scram-sha-256 for \
             this user in its pg_hba.conf, or add require_auth=md5 to the address",
};

const NO_SIGNATURE: Error = Error::Login {
    reason: "the server could not prove that it knows the password",
    advice: "check that the address names your server: another program may listen there",
};

/// Limits the work a server can cause: it chooses how often the password is hashed, up to four billion times.
fn require_bounded_work(step: &[u8]) -> Result<(), Error> {
    /// Takes a few seconds. PostgreSQL's default is 4,096, and the highest recommendation is 600,000.
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

/// The password, if the address has one and accepts this method; the error `otherwise` if it does not accept it.
fn accepted(address: &Address, auth: Auth, otherwise: Error) -> Result<&Password, Error> {
    let password = address.password.as_ref().ok_or(Error::Login {
        reason: "the server wants a password, and the address has none",
        advice: "give user and password: postgres://USER:PASSWORD@HOST/NAME",
    })?;
    if address.accepts(auth) { Ok(password) } else { Err(otherwise) }
}

/// Refuses a login without proof, unless the address accepts it: any program that holds the port can send an OK.
fn require_no_proof(address: &Address) -> Result<(), Error> {
    match (address.accepts(Auth::None), &address.password) {
        (true, _) => Ok(()),
        (false, Some(_)) => Err(Error::Login {
            reason: "the server did not ask for the password, so it has not proven to be yours",
            advice: "set scram-sha-256 for this user in the server's pg_hba.conf, or, if you trust it anyway, remove \
                     the password from the address",
        }),
        (false, None) => Err(Error::Login {
            reason: "the server did not ask for the login that require_auth in the address requires",
            advice: USE_SCRAM,
        }),
    }
}

/// SCRAM: both sides prove that they know the password without sending it. The server's signature is verified.
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
        // Says that we support binding: a server that does too, but whose offer was tampered with, then refuses.
        Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
        None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
    };
    if binding == Binding::Required && mechanism != SCRAM_SHA_256_PLUS {
        return Err(Error::Login {
            reason: "the login cannot be bound to the server's certificate, which channel_binding=require demands",
            advice: "use TLS and a certificate signed with SHA-256 or SHA-384, or remove channel_binding",
        });
    }
    if !offered.contains(&mechanism) {
        let reason = "the server does not offer a login with scram-sha-256";
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

    /// The result of logging in to a server that answers each message with the next step of `script`, and all the bytes
    /// that the server was sent.
    fn log_in(options: &str, script: Vec<Say>) -> (Result<(), Error>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut received = Vec::new();
            for say in script {
                let heard = hear(&mut client);
                client.write_all(&say(&heard)).unwrap();
                received.extend(heard);
            }
            drop(listener);
            let _ = client.shutdown(std::net::Shutdown::Write);
            let _ = client.read_to_end(&mut received);
            received
        });
        let address = format!("postgres://me:geheim@127.0.0.1:{port}/w?connect_timeout=5{options}");
        let connected = Client::connect(&Address::parse(&address).unwrap());
        (connected.map(drop), server.join().unwrap())
    }

    /// What a server answers to a message.
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

    /// A SASL message, as a server sends it.
    fn step(code: u8, text: &str) -> Vec<u8> {
        let length = u32::try_from(8 + text.len()).unwrap().to_be_bytes();
        [b"R".as_slice(), &length, &[0, 0, 0, code], text.as_bytes()].concat()
    }

    /// Continues the exchange with the client's nonce, extended as the protocol requires.
    fn proceed() -> Say {
        proceed_with(4096)
    }

    fn proceed_with(iterations: u32) -> Say {
        Box::new(move |heard| {
            let heard = String::from_utf8_lossy(heard);
            // A nonce may contain "r=" itself.
            let (_, nonce) = heard.split_once("r=").unwrap();
            step(11, &format!("r={nonce}more,s=c2FsdA==,i={iterations}"))
        })
    }

    /// Expects a refusal with this text, and that the server learned nothing but the user's name.
    #[track_caller]
    fn refuse(options: &str, script: Vec<Say>, expected: &str) {
        let (refused, received) = log_in(options, script);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
        let received = String::from_utf8_lossy(&received).into_owned();
        assert!(received.contains("client_encoding"), "{received}");
        assert!(!received.contains("geheim") && !received.contains("md5"), "{received}");
        assert!(!received.contains("pg_backend_pid"), "a query was sent: {received}");
    }

    /// Any program that held the port used to get the password.
    #[test]
    fn a_server_that_wants_no_mutual_proof_gets_nothing() {
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
    fn a_server_that_proves_nothing_is_refused() {
        refuse("", vec![say(OK)], "did not ask for the password");
        refuse("", vec![say(READY)], "not a step of a login");
        refuse("", vec![say(b"K\0\0\0\x0c\0\0\0\x07\0\0\0\0")], "not a step of a login");
        refuse("", vec![say(SCRAM), say(OK)], "not a step of a login");
        refuse("", vec![say(SCRAM), say(CLEAR_TEXT)], "not a step of a login");
        refuse("", vec![say(SCRAM), proceed(), say(OK)], "not a step of a login");
        let wrong = Box::new(|_: &[u8]| step(12, "v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="));
        refuse(
            "",
            vec![say(SCRAM), proceed(), wrong],
            "could not prove that it knows the password",
        );
        let none = Box::new(|_: &[u8]| step(12, ""));
        refuse("", vec![say(SCRAM), proceed(), none], "could not prove that it knows the password");
        refuse("", vec![say(SCRAM), proceed_with(u32::MAX)], "more than 10 million times");
        refuse("&channel_binding=require", vec![say(SCRAM)], "channel_binding=require demands");
    }

    #[test]
    fn a_weaker_method_is_used_if_the_address_names_it() {
        let (_, received) = log_in("&require_auth=md5", vec![say(MD5)]);
        assert!(String::from_utf8_lossy(&received).contains("md5"));
        let accepted = Box::new(|_: &[u8]| [OK, READY].concat());
        let (_, received) = log_in("&require_auth=none", vec![accepted]);
        assert!(String::from_utf8_lossy(&received).contains("pg_backend_pid"));
    }

    #[test]
    fn a_message_from_the_server_does_not_show_the_password() {
        let refusal = |text: &str| {
            let fields = format!("SFATAL\0C28P01\0M{text}\0\0");
            let length = u32::try_from(4 + fields.len()).unwrap().to_be_bytes();
            [b"E".as_slice(), &length, fields.as_bytes()].concat()
        };
        for (text, shown) in [
            ("no geheim here".to_owned(), "no *** here".to_owned()),
            ("me:%67eheim@h".to_owned(), "me:***@h".to_owned()),
            // Masked only after it was cut in the middle, half of it would remain.
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
