"""The closed vocabulary by which `secret_names` judges a key: data only, grouped by the part a word plays.

A word belongs here when it plays its part in many names. Does not belong here: whole key names, and any
rule of how the parts act on each other.
"""

from __future__ import annotations


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


# Heads that are secret by themselves. Values under the numeric ones are secret as numbers too.
ALWAYS_SECRET = _words(
    "secret secrets credential credentials cred creds cookie cookies jwt jwts csrf xsrf dsn mnemonic",
    "keytab psk sessid sessionid jsessionid секрет 秘密 令牌 凭证",
)
ALWAYS_SECRET_AS_NUMBER = _words(
    "password passwords passwd passwds pwd pwds pswd pw passphrase passphrases passcode passcodes passkey",
    "passkeys cvv cvc cvn otp otps totp hotp ssn contraseña contrasena passwort kennwort senha wachtwoord",
    "parola haslo hasło heslo jelszó losenord lösenord adgangskode salasana şifre пароль пароли",
    "密码 密碼 口令 パスワード 暗証番号 비밀번호 암호",
)

# Heads that are secret only beside a fitting word on their left (the words that fit follow).
PASS_FITS = _words(
    "db database sql mysql postgres postgresql pg redis mongo mongodb rabbitmq ldap smtp imap pop pop3",
    "ftp sftp ssh mail email user username admin root login account api app client server host proxy http",
    "https basic auth wifi vpn vnc rdp bind keystore truststore key cert new old current temp my service",
    "registry docker repo sudo become",
)
PIN_FITS = _words(
    "card user customer atm debit sim device login security account access bank unlock wallet app door",
)
AUTH_FITS = _words(
    "basic proxy http https registry docker npm digest git smtp redis mongo mongodb my x request requests",
    "upstream forwarded client user custom default headers header authorization auth",
)
CODE_FITS = _words(
    "recovery backup security verification otp totp mfa 2fa tfa factor sms pin auth authorization device",
    "access login scratch unlock token temporary onetime cvv cvc reset authentication authenticator",
    "passcode secret emergency",
)
URL_FITS = _words(
    "database db webhook redis mongo mongodb postgres postgresql pg mysql mariadb amqp amqps rabbitmq",
    "broker jdbc odbc sqlalchemy connection conn dsn datasource cockroachdb sas magic presigned signed",
    "otp totp otpauth",
)
NUMBER_FITS = _words("card cc creditcard debitcard")
SHORT_NUMBER_FITS = _words("security pin")
STRING_FITS = _words("connection conn connect")
PHRASE_FITS = _words("seed recovery secret backup mnemonic wallet")
SEED_FITS = _words("otp totp hotp secret wallet mnemonic")
ASSERTION_FITS = _words("client saml jwt")
ANSWER_FITS = _words("security secret challenge recovery")
CONFIG_FITS = _words("docker dockerauth kube kubernetes")

# `token` is secret unless the nearest telling word on its left is one of these.
TOKEN_IS_BENIGN_AFTER = _words(
    "next prev previous page paging pagination paginated cursor sync continuation continue continued",
    "resume resumption start starting begin end ending stop change delta skip sequence seq lock lease",
    "fencing fence watch progress bookmark offset marker scroll iterator iteration snapshot consistency",
    "causal revision version etag dedup deduplication idempotency idempotent request position search",
    "query list batch forward backward range partition stream checkpoint read eos bos pad padding unk",
    "mask cls sep special fim prefix suffix middle eot eom eol sentinel separator prompt completion input",
    "output context reasoning thinking thought thoughts cached cache audio image text video vision word",
    "subword sub emoji draft accepted rejected generated predicted decoded speculative vocab vocabulary",
    "llm erc erc20 nft lp governance utility reward swap sell buy quote gas collateral staking design",
    "color spacing theme css syntax lexer lexical parser grammar keyword identifier operator literal",
    "total max maximum min minimum num number n count per by each cost price budget estimated remaining",
    "available used unused first last current median average avg mean sum any all every one of",
)
# These settle that a token, or even tokens, are credentials.
TOKEN_IS_SECRET_AFTER = _words(
    "access refresh auth oauth oauth2 api bot bearer csrf xsrf jwt personal secret security reset",
    "authentication authorization sso saml pat impersonation",
)
# One token only: as a plural these words count things.
ONE_TOKEN_IS_SECRET_AFTER = _words(
    "session id user app service deploy deployment admin verification registration login signing client",
    "device push webhook invite invitation bootstrap join runner install installation verify",
)

# `key` is secret only when the nearest word on its left is one of these or a vendor.
KEY_IS_SECRET_AFTER = _words(
    "api apis secret private priv access encryption encrypt encrypting decryption decrypt signing sign",
    "signature master ssh rsa dsa ecdsa ed25519 hmac aes cipher crypt fernet sse plaintext preshared psk",
    "symmetric wrapping unseal shared restricted",
)
ONE_KEY_IS_SECRET_AFTER = _words(
    "tls ssl cert certificate account storage subscription license licence service deploy deployment app",
    "application ephemeral client server auth authentication authorization admin root bot webhook",
    "webhooks integration developer consumer jwt jws jwe cookie password passphrase credential token",
    "security functions vapid recovery activation management provisioning ingest ingestion write",
    "instrumentation enrollment tunnel wireguard wallet maps merchant partner gateway derivation hashing",
    "pem privileged otp totp mfa csrf bearer serial apns fcm vpn wifi stream",
)
# Between a telling word and `key` these say whose or which key it is.
KEY_BELONGS_TO = _words(
    "customer user account project team org organization tenant workspace data live test prod production",
    "dev sandbox development staging service primary secondary default backup old new current admin",
)
PUBLIC = _words("public publishable pub idempotency")
# After `key` or `token` the name of where it travels; after `auth` or `cookie` it is the thing itself.
NAMED_BY = _words("header headers hdr")

VENDORS = _words(
    "openai anthropic claude gemini vertex google gcp aws amazon azure github gitlab bitbucket slack",
    "discord telegram whatsapp stripe paypal braintree adyen twilio sendgrid mailgun mailchimp mailjet",
    "postmark huggingface hf cohere mistral mistralai groq replicate perplexity pplx fireworks deepseek",
    "openrouter xai grok togetherai pinecone weaviate qdrant milvus zilliz supabase firebase vercel",
    "netlify cloudflare digitalocean heroku datadog dd sentry newrelic grafana posthog mixpanel amplitude",
    "langsmith langchain langfuse langgraph llamacloud tavily serpapi serper exa firecrawl browserbase",
    "elevenlabs deepgram assemblyai notion airtable jira atlassian confluence asana trello hubspot",
    "salesforce zendesk intercom freshdesk shopify woocommerce plaid coinbase binance kraken okta auth0",
    "clerk algolia mapbox openweather openweathermap rapidapi wandb databricks snowflake dockerhub docker",
    "npm pypi rubygems nuget hashicorp pagerduty opsgenie zoom dropbox figma spotify youtube facebook",
    "meta twitter linkedin reddit instagram tiktok bing cerebras nvidia voyage voyageai jina upstash",
    "planetscale elastic elasticsearch rollbar bugsnag honeycomb circleci jenkins sonarqube snyk",
    "cloudinary unsplash pexels giphy infura etherscan moralis finnhub alphavantage newsapi nasa tmdb ghp",
    "gh recaptcha hcaptcha turnstile wolframalpha wolfram azureopenai bedrock sagemaker ocp apim xoxb",
    "watsonx ibm",
)

# A head before one of these is not the head: the name is about the secret.
METADATA = _words(
    "count counts length len size sizes limit limits quota budget usage ratio rate score strength level",
    "rank id ids uuid guid arn urn uri uris url urls href path paths file files filename filepath dir",
    "directory folder location locations endpoint endpoints host hosts hostname domain domains port",
    "origin origins region regions namespace namespaces prefix suffix format formats pattern regex schema",
    "type types kind kinds class category mode modes method methods algorithm algorithms alg algs algo",
    "version versions revision policy policies rule rules name names label labels title description desc",
    "comment comments note notes hint hints question questions message messages help error errors status",
    "state states result results reason reasons object at on by time times timestamp date day days hour",
    "hours minute minutes seconds secs ms age ttl expiry expires exp lifetime duration interval window",
    "period since until last eight last4 ago created updated modified valid invalid present exists set",
    "missing active optional secure httponly samesite used max min field fields column columns selector",
    "attribute attributes attr property properties option options setting settings config configs",
    "configuration requirements param params parameter parameters flag flags store stores backend engine",
    "source sources target issuer audience aud subject username users email role roles group groups scope",
    "scopes permission permissions request requests response responses grant grants ref refs reference",
    "references index map mapping check checks event events action actions callback hook hooks alert",
    "alerts audit log logs banner consent jar fingerprint thumbprint template templates tag tags metadata",
    "env envs envvar var variable variables claim claims exempt sent channel channels delivery attempt",
    "attempts retry retries device devices phone reset change changes update updates recovery match",
    "mismatch menu element locator xpath meta icon page screen form dialog modal button tab view support",
    "statistics stats detail details info summary report process cache keyword keywords scan scans alias",
    "aliases profile profiles context cost price flow grace entropy complexity py js ts tsx jsx mjs md",
    "rst html css scss go rs java rb php c cc cpp h hpp sql sh yaml yml toml ini lock xml csv svg png jpg",
    "cs kt swift vue svelte ipynb spec test",
)
METADATA_ENDINGS = (
    *(
        "ing",
        "ings",
        "ed",
        "er",
        "ers",
        "or",
        "ors",
        "tion",
        "tions",
        "sion",
        "able",
        "ible",
        "ability",
        "ity",
    ),
    *("ment", "ments", "ness", "ance", "ence", "ency", "less"),
)
# Words after a head that leave it the head, though some end like metadata.
CARRIERS = _words(
    "value values val data json pem b64 base64 hex txt raw plain plaintext cleartext string strings str",
    "text binary blob bytes content contents body payload block header headers hdr confirmation confirm",
    "again repeat repeated retype encrypted encoded hashed decrypted decoded escaped hash digest salted",
    "ciphertext material salt base old new current previous prev temporary temp default primary secondary",
    "backup master root admin other prod production dev development stage staging test testing sandbox",
    "live local internal global main shared history list array one two a b",
)

# From these words on, a name says what the secret is for.
PURPOSE = _words("for to")

# Before a head these make the name a switch, a count or an action.
SWITCHES = _words(
    "is are was has have had can could should will would must need needs require requires required use",
    "uses using allow allows allowed enable enables enabled disable disables disabled show shows hide",
    "hides with without no non not num number count max maximum min minimum total missing invalid forgot",
    "forgotten lost supports supported include includes including exclude skip ignore force prompt ask",
    "change automount check validate generate fetch get parse rotate revoke masked redacted obfuscated",
    "xpath selector locator regex regexp",
)

# Pieces that only show up in names written as one word.
GLUE = _words("docker kube middleware web hub bot my acme org team x php remember me user group")
# One word by meaning, however it was written.
JOINED = {
    "passwords": ("pass", "words"),
    "password": ("pass", "word"),
    "passphrase": ("pass", "phrase"),
    "passcode": ("pass", "code"),
    "passkey": ("pass", "key"),
    "onetime": ("one", "time"),
    "oauth": ("o", "auth"),
    "oauth2": ("o", "auth2"),
    "webhook": ("web", "hook"),
    "webhooks": ("web", "hooks"),
    "github": ("git", "hub"),
    "gitlab": ("git", "lab"),
    "huggingface": ("hugging", "face"),
    "username": ("user", "name"),
    "dockerauth": ("docker", "auth"),
    "filename": ("file", "name"),
    "keystore": ("key", "store"),
    "preshared": ("pre", "shared"),
    "presigned": ("pre", "signed"),
}
# Written as one word behind anything at all, these still cannot be part of an ordinary word.
DISTINCT_ENDINGS = (
    *(
        "password",
        "passwd",
        "passphrase",
        "secret",
        "apikey",
        "apikeys",
        "apitoken",
        "apisecret",
        "accesskey",
    ),
    *("accesstoken", "authtoken", "refreshtoken", "secretkey", "privatekey", "clientsecret", "credentials"),
    *("connectionstring", "sessid", "cookie"),
)
