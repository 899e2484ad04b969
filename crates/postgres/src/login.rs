//! Saying who one is.

use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;

use crate::address::Address;
use crate::client::Client;
use crate::error::Error;

/// Introduces the client, proves the password, and waits until the server is ready.
pub(crate) fn login(client: &mut Client, address: &Address) -> Result<(), Error> {
    let parameters = [
        ("user", address.user.as_str()),
        ("database", &address.database),
        ("application_name", "ikigai"),
        ("client_encoding", "UTF8"),
    ];
    frontend::startup_message(parameters, client.output())?;
    client.send()?;
    loop {
        match client.message()? {
            Message::AuthenticationOk => {}
            Message::AuthenticationCleartextPassword => {
                // Only reached where nobody can listen: on this machine, or through TLS.
                let password = password(address)?.as_bytes().to_vec();
                frontend::password_message(&password, client.output())?;
                client.send()?;
            }
            Message::AuthenticationMd5Password(body) => {
                let (user, password) = (address.user.as_bytes(), password(address)?.as_bytes());
                let hash = md5_hash(user, password, body.salt());
                frontend::password_message(hash.as_bytes(), client.output())?;
                client.send()?;
            }
            Message::AuthenticationSasl(body) => prove(client, &body, password(address)?)?,
            Message::BackendKeyData(body) => client.set_process(body.process_id()),
            Message::ReadyForQuery(_) => return Ok(()),
            Message::ErrorResponse(body) => return Err(Client::refusal(&body)),
            Message::AuthenticationGss
            | Message::AuthenticationKerberosV5
            | Message::AuthenticationSspi => {
                let text = "the server wants a Kerberos login, which ikigai cannot do: allow scram-sha-256 for this user in pg_hba.conf";
                return Err(Error::Login(text.to_owned()));
            }
            _ => return Err(Error::protocol("not a step of a login")),
        }
    }
}

fn password(address: &Address) -> Result<&str, Error> {
    let none = || Error::Login("the server wants a password, and the address has none".to_owned());
    address.password.as_deref().ok_or_else(none)
}

/// Shows that both sides know the password, without sending it.
fn prove(client: &mut Client, body: &AuthenticationSaslBody, password: &str) -> Result<(), Error> {
    let is_offered = body.mechanisms().any(|name| Ok(name == SCRAM_SHA_256))?;
    if !is_offered {
        return Err(Error::Login("the server offers no login with scram-sha-256".to_owned()));
    }
    let mut proof = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    frontend::sasl_initial_response(SCRAM_SHA_256, proof.message(), client.output())?;
    client.send()?;
    loop {
        match client.message()? {
            Message::AuthenticationSaslContinue(body) => {
                proof.update(body.data())?;
                frontend::sasl_response(proof.message(), client.output())?;
                client.send()?;
            }
            Message::AuthenticationSaslFinal(body) => return Ok(proof.finish(body.data())?),
            Message::ErrorResponse(body) => return Err(Client::refusal(&body)),
            _ => return Err(Error::protocol("not a step of a login")),
        }
    }
}
