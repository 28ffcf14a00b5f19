// A person at a browser who signs in and agrees to all, for both TypeScript clients.

// The page to which the authorization server sends the browser back. Nobody serves it.
const redirect = 'http://127.0.0.1:1/callback';

// Person is an OAuthClientProvider that keeps all in memory.
export class Person {
  constructor(name) {
    this.name = name;
    this.asked = []; // the scopes of each authorization request, sorted
  }

  get redirectUrl() { return redirect; }

  get clientMetadata() {
    return { client_name: 'interop', redirect_uris: [redirect], grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'none' };
  }

  clientInformation() { return this.client; }

  saveClientInformation(client) { this.client = client; }

  tokens() { return this.kept; }

  saveTokens(tokens) { this.kept = tokens; }

  codeVerifier() { return this.verifier; }

  saveCodeVerifier(verifier) { this.verifier = verifier; }

  discoveryState() { return this.discovered; }

  saveDiscoveryState(state) { this.discovered = state; }

  // The authorization server sends the browser back at once.
  async redirectToAuthorization(url) {
    this.asked.push(url.searchParams.get('scope')?.split(' ').sort().join(' '));
    url.searchParams.set('login_hint', this.name);
    const response = await fetch(url, { redirect: 'manual' });
    const back = response.headers.get('location');
    if (!back) {
      throw new Error(`the authorization server answers ${response.status}: ${await response.text()}`);
    }
    this.code = new URL(back).searchParams.get('code');
  }

  // allowed does work, which may send the person to the authorization server. Then it does it again.
  async allowed(transport, work) {
    try {
      return await work();
    } catch (error) {
      const code = this.code;
      if (!code) {
        throw error;
      }
      this.code = undefined;
      await transport().finishAuth(code);
      return work();
    }
  }
}
