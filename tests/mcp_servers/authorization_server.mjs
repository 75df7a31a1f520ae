// An authorization server (oidc-provider, from npm) that lets in whom the browser names in its header x-user.
//
// It registers clients, wants PKCE, rotates refresh tokens, revokes, and exchanges a token for one of another server
// (RFC 8693). Access tokens are JWTs for the server that the client names as resource (RFC 8707).
// Arguments: the port, and the seconds for which an access token lasts. Prints "listening" once it serves.

import * as http from 'node:http';
import Provider, { errors } from 'oidc-provider';

const [port, lifetime] = process.argv.slice(2).map(Number);
const issuer = `http://127.0.0.1:${port}/`; // with a slash, as FastMCP writes it
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ofServer = (audience) => ({
  scope: 'mcp', audience, accessTokenFormat: 'jwt', accessTokenTTL: lifetime, jwt: { sign: { alg: 'RS256' } },
});

const provider = new Provider(issuer, {
  clients: [
    { client_id: 'gateway', client_secret: 'a-secret-of-the-gateway', grant_types: [EXCHANGE], redirect_uris: [], response_types: [] },
    {
      client_id: 'app', token_endpoint_auth_method: 'none', application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token'], redirect_uris: ['http://127.0.0.1/callback'],
    },
  ],
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: (ctx, client, oneOf) => oneOf ?? undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, resource) => ofServer(resource),
    },
  },
  clientDefaults: { grant_types: ['authorization_code', 'refresh_token'] },
  scopes: ['openid', 'offline_access', 'mcp'],
  pkce: { required: () => true },
  issueRefreshToken: async () => true,
  rotateRefreshToken: true,
  findAccount: (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  extraTokenClaims: (ctx, token) => ({ email: `${token.accountId ?? token.extra?.user}@example.com` }),
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  ttl: { Grant: 86400, Session: 86400, Interaction: 600, RefreshToken: 86400, AccessToken: lifetime },
  cookies: { keys: ['a key'] },
});

provider.registerGrantType(EXCHANGE, async (ctx) => {
  const { client, params } = ctx.oidc;
  let subject;
  try {
    const claims = JSON.parse(Buffer.from(params.subject_token.split('.')[1], 'base64url'));
    const found = await provider.AccessToken.find(claims.jti);
    subject = found ?? { accountId: claims.sub, exp: claims.exp };
  } catch {
    throw new errors.InvalidGrant('the subject_token is none');
  }
  if (subject.exp <= Date.now() / 1000) throw new errors.InvalidGrant('the subject_token has expired');
  const token = new provider.AccessToken({
    accountId: subject.accountId, client, gty: 'exchange', scope: 'mcp', grantId: 'exchange', expiresWithSession: false,
  });
  token.resourceServer = new provider.ResourceServer(params.resource, ofServer(params.resource));
  ctx.body = {
    access_token: await token.save(), issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer', expires_in: token.expiration,
  };
}, ['subject_token', 'subject_token_type', 'resource', 'audience', 'scope'], ['resource']);

const serve = provider.callback();
http.createServer(async (request, response) => {
  if (!request.url.startsWith('/interaction/')) return serve(request, response);
  const user = request.headers['x-user'];
  const asked = await provider.interactionDetails(request, response);
  if (!user) return provider.interactionFinished(request, response, { error: 'access_denied' });
  const grant = new provider.Grant({ accountId: user, clientId: asked.params.client_id });
  grant.addOIDCScope('openid offline_access mcp');
  if (asked.params.resource) grant.addResourceScope(asked.params.resource, 'mcp');
  const result = { login: { accountId: user }, consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result);
}).listen(port, '127.0.0.1', () => console.log('listening'));
