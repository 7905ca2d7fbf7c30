import { parseSeedFile } from '../../../src/emulator/seed/seed-file.ts';
import type { EmulatorOptions } from '../../../src/emulator/emulator.ts';
import { KEY, stage } from './emulator-stage.ts';

/** Two organizations with one person, template and domain each, of the same names. */
const both = `
organizations:
  - id: org_a
    name: A
    keys:
      - { id: key_a, key: ${KEY}, name: Everything }
      - { id: key_read, key: k_read, name: Reader, permissions: read }
      - { id: key_write, key: k_write, name: Writer, permissions: "write, other" }
      - { id: key_none, key: k_none, permissions: "" }
      - { id: key_off, key: k_off, name: Off, enabled: false }
      - { id: key_gone, key: k_gone, revoked: true }
    users: [{ id: user_a, name: Ann, email: ann@a.example, session: s_a }]
    channels: [{ id: ch_a, name: A news }]
    people: [{ id: con_a, email: ann@example.org, channels: { ch_a: opt_in } }]
    templates: [{ id: tpl_a, name: Welcome }]
    domains: [{ id: dom_a, domain: mail.example.org }]
  - id: org_b
    keys: [{ id: key_b, key: k_b }]
    users: [{ name: Bob, email: bob@b.example, session: s_b }]
    channels: [{ id: ch_b, name: B news }]
    people: [{ id: con_b, email: ann@example.org }]
    templates: [{ id: tpl_b, name: Welcome }]
    domains: [{ id: dom_b, domain: mail.example.org }]
guests: [{ name: Zoe, email: zoe@example.org, session: s_none }]
`;

export function twoOrganizations(options: Partial<EmulatorOptions> = {}) {
  const platform = stage({
    apiKey: undefined,
    channels: [],
    seedFile: parseSeedFile('seed.yaml', both),
    ...options,
  });
  /** Asks with another key than that of organization A. */
  const askAs = (key: string, line: string, body?: unknown) =>
    platform.ask(line, body, { 'x-api-key': key });
  /** Asks with a session, and without any key. */
  function askIn(session: string, line: string) {
    const [method = '', path = ''] = line.split(' ');
    const cookie = `theme=dark; __Secure-app.session_token=${session}`;
    const { status, headers, body } = platform.handle({ method, path, headers: { cookie } });
    return { status, headers, json: JSON.parse(body) };
  }
  return { ...platform, askAs, askIn };
}
