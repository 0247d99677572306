//! A route: what it matches, what it takes and answers, and the function that does it.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Api;
use super::error::ApiError;

/// What an operation answers.
pub type Answer = Result<Value, ApiError>;

type Run = Box<dyn Fn(Api, Input) -> BoxFuture<'static, Answer> + Send + Sync>;

/// One operation of the API.
pub struct Route {
    /// Its method.
    pub method: Method,
    /// Its path, with names in braces.
    pub path: &'static str,
    /// Its name, also that of the action in an access key.
    pub operation: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// What it takes.
    pub input: fn(&mut SchemaGenerator) -> Schema,
    /// What it answers.
    pub output: fn(&mut SchemaGenerator) -> Schema,
    /// Whether it waits when it is asked to.
    pub may_wait: bool,
    run: Run,
}

/// What asks an operation to wait.
const WAIT: &str = "wait_ms";

/// A request as an operation gets it: names in the path and parameters of the query, and the body.
#[derive(Debug, Default)]
pub struct Input {
    /// Path and query.
    pub values: Vec<(String, String)>,
    /// The body; nothing where a method has none.
    pub body: Option<Bytes>,
}

impl Route {
    /// A route to a function.
    pub fn new<I, O, F>(
        method: Method,
        path: &'static str,
        operation: &'static str,
        summary: &'static str,
        run: impl Fn(Api, I) -> F + Send + Sync + Copy + 'static,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema,
        F: Future<Output = Result<O, ApiError>> + Send + 'static,
    {
        let run: Run = Box::new(move |api, input| {
            Box::pin(async move {
                let output = run(api, input.read::<I>()?).await?;
                serde_json::to_value(output).map_err(|error| {
                    let message = format!("the answer cannot be written: {error}");
                    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
                })
            })
        });
        let (input, output) = (
            I::json_schema as fn(&mut SchemaGenerator) -> Schema,
            SchemaGenerator::subschema_for::<O> as fn(&mut SchemaGenerator) -> Schema,
        );
        let fields = input(&mut SchemaGenerator::default());
        let may_wait = fields.pointer(&format!("/properties/{WAIT}")).is_some();
        Self { method, path, operation, summary, input, output, may_wait, run }
    }

    /// Whether requests of its method have a body.
    pub fn has_body(&self) -> bool {
        self.method != Method::GET && self.method != Method::DELETE
    }

    /// The names in the path, when it matches.
    pub fn matches(&self, path: &str) -> Option<Vec<(String, String)>> {
        let (mut wanted, mut given) = (self.path.split('/'), path.split('/'));
        let mut names = Vec::new();
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return Some(names),
                (Some(wanted), Some(given)) => {
                    let name = wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
                    match name {
                        Some(name) => {
                            let given = percent_decode_str(given).decode_utf8().ok()?;
                            names.push((name.to_owned(), given.into_owned()));
                        }
                        None if wanted == given => {}
                        None => return None,
                    }
                }
                _ => return None,
            }
        }
    }

    /// Does it.
    pub async fn run(&self, api: Api, input: Input) -> Answer {
        (self.run)(api, input).await
    }
}

impl Input {
    /// The value of a name in the path or the query.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether it asks to wait, for an operation that does.
    pub fn waits(&self) -> bool {
        let Some(body) = &self.body else {
            return self.value(WAIT).is_some_and(|wait| wait.parse() != Ok(0_u64));
        };
        // What cannot be read is refused without waiting.
        let object = object(body).unwrap_or_default();
        object.get(WAIT).is_some_and(|wait| wait.as_u64() != Some(0))
    }

    fn read<I: DeserializeOwned>(self) -> Result<I, ApiError> {
        match &self.body {
            None => {
                let text = serde_urlencoded::to_string(&self.values)
                    .map_err(|error| ApiError::invalid("query", error))?;
                let parsed = serde_urlencoded::Deserializer::new(form(text.as_bytes()));
                serde_path_to_error::deserialize(parsed).map_err(wrong_field)
            }
            Some(body) => {
                let mut object = object(body)?;
                for (name, value) in self.values {
                    if object.insert(name.clone(), Value::String(value)).is_some() {
                        let problem = "is given in the path or query, and again";
                        return Err(ApiError::invalid(&name, problem));
                    }
                }
                serde_path_to_error::deserialize(Value::Object(object)).map_err(wrong_field)
            }
        }
    }
}

/// The body as JSON; an empty one is an empty object.
fn object(body: &Bytes) -> Result<Map<String, Value>, ApiError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid("body", format!("is not a JSON object: {error}")))
}

fn form(text: &[u8]) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(text)
}

fn wrong_field<E: std::error::Error>(error: serde_path_to_error::Error<E>) -> ApiError {
    let path = error.path().to_string();
    let problem = error.into_inner().to_string();
    match path.as_str() {
        // What is missing or unknown is named by the message itself.
        "." | "" => {
            let field = problem.split('`').nth(1).map(str::to_owned);
            let error = ApiError::new(StatusCode::BAD_REQUEST, "invalid", problem);
            match field {
                Some(field) => error.field(field),
                None => error,
            }
        }
        path => ApiError::invalid(path, format!("is not valid: {problem}")),
    }
}
