/** Shows the configuration as it applies, without secrets, and checks it on request. */
import { stringify } from 'yaml';
import type { Config } from '../../config/config.ts';
import type { User } from '../access/visitor.ts';
import { actionForm } from '../view/form.ts';
import { html, type Page } from '../view/page.ts';
import { table } from '../view/table.ts';

/** The page of the configuration. */
export const configurationPage: Page = {
  path: 'configuration',
  nav: 'Configuration',
  show(request) {
    const { config } = request.mirror;
    const channels = config.contacts?.channels ?? [];
    const rows = channels.map(({ id, name, subscription }) => [
      id,
      name ?? '–',
      html`<code>${wordsOf(subscription)}</code>`,
    ]);
    const body = html`<p>
        From <code>${config.file}</code>, as this process has read it, with its defaults. Where a
        value could be a secret, only that it is set is shown.
      </p>
      ${actionForm(request, { action: 'check', label: 'Check it now' })}
      <p class="quiet">
        The check reads the source and asks the platform. It shows the values of each mapped column
        with their counts, and what each means.
      </p>
      <section>
        <h2>Channels</h2>
        ${table(['Channel', 'Name', 'What the CRM says'], rows)}
      </section>
      <section>
        <h2>Everything</h2>
        <pre>${shownConfig(config, request.user)}</pre>
      </section>`;
    return { title: 'Configuration', body };
  },
};

function wordsOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Blocks without a value that could be a secret. */
const openBlocks: ReadonlySet<string> = new Set([
  'mirror',
  'file',
  'snapshot',
  'policy',
  'guards',
  'alerts',
  'keepMs',
  'audit',
  'requests',
  'ledger',
  'schedule',
]);

/** Options of the other blocks whose text is no secret; any other text is only said to be set. */
const openKeys: ReadonlySet<string> = new Set([
  'id',
  'email',
  'name',
  'subscription',
  'field',
  'in',
  'out',
  'none',
  'yes',
  'no',
  'deleted',
  'unsubscribed',
  'consentAt',
  'format',
  'timezone',
  'include',
  'protect',
  'when',
  'type',
  'path',
  'delimiter',
  'encoding',
  'sheet',
  'records',
  'host',
  'port',
  'users',
  'header',
  'replaces',
]);

/**
 * Returns the configuration without anything that could be a secret, and without addresses of
 * people for users who may not see them.
 */
function shownConfig(config: Config, { seesAddresses }: Pick<User, 'seesAddresses'>): string {
  const entries = Object.entries(config).filter(([, value]) => value !== undefined);
  const text = stringify(
    Object.fromEntries(
      entries.map(([name, value]) => [name, openBlocks.has(name) ? value : shown(value, name)]),
    ),
  );
  return seesAddresses ? text : text.replaceAll(/[^\s"'<>,[\]]+@[^\s"'<>,[\]]+/g, '(an address)');
}

function shown(value: unknown, key: string): unknown {
  if (Array.isArray(value)) return value.map((one) => shown(one, key));
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, one]) => one !== undefined);
    return Object.fromEntries(entries.map(([name, one]) => [name, shown(one, name)]));
  }
  if (typeof value !== 'string') return value;
  if (openKeys.has(key)) return value;
  const host = URL.canParse(value) ? new URL(value).host : '';
  return host === '' ? '(set)' : `${host} (the rest is not shown)`;
}
