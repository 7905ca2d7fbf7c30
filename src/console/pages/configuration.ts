/** Shows the configuration as it applies, without secrets, and checks it on request. */
import { stringify } from 'yaml';
import { z } from 'zod';
import { lasting } from '../../compose/output/format-values.ts';
import { actionForm } from '../view/form.ts';
import { html, sectionsHtml } from '../../views/render/html.ts';
import type { Text } from '../../views/sections.ts';
import { type Page } from '../view/page.ts';

/** The page of the configuration. */
export const configurationPage: Page = {
  path: 'configuration',
  nav: 'Configuration',
  show(request) {
    const { config } = request.mirror;
    const channels = config.contacts?.channels ?? [];
    const rows = channels.map(({ id, name, subscription: of }): Text[] => [
      id,
      name ?? '–',
      { verbatim: typeof of === 'string' ? of : stringify(of, inFile).trim() },
    ]);
    const table = { columns: ['Channel', 'Name', 'What the CRM says'], rows };
    const entries = Object.entries(config)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [titleOf(key, value), shown(value, key, openBlocks.has(key))]);
    const text = stringify(Object.fromEntries(entries), { aliasDuplicateObjects: false });
    const address = /[^\s"'<>,[\]]+@[^\s"'<>,[\]]+/g;
    const isNamed = request.user.seesAddresses;
    const body = html`<p>
        From <code>${config.file}</code>, as this process has read it, with its defaults. Where a
        value could be a secret, only that it is set is shown.
      </p>
      ${actionForm(request, { action: 'check', label: 'Check it now' })}
      <p class="quiet">
        The check reads the source and asks the platform. It shows the values of each mapped column
        with their counts, and what each means.
      </p>
      ${sectionsHtml([{ title: 'Channels', table }], {})}
      <section>
        <h2>Everything</h2>
        <pre>${isNamed ? text : text.replaceAll(address, '(an address)')}</pre>
      </section>`;
    return { title: 'Configuration', body };
  },
};

/** Replaces what was read by what the file states. */
function inFile(_: string, value: unknown): unknown {
  const condition = parsedCondition.safeParse(value);
  return condition.success ? condition.data.text : value;
}

/** A condition, which is kept with its text. */
const parsedCondition = z.object({ text: z.string(), judge: z.function() });

const durations = /Ms$/;

/** Blocks without a value that could be a secret. */
const openBlocks: ReadonlySet<string> = new Set(
  'mirror file snapshot policy guards alerts keepMs audit requests memory schedule'.split(' '),
);

/** Options of the other blocks whose text is no secret; any other text is only said to be set. */
const openKeys: ReadonlySet<string> = new Set(
  (
    'id email name subscription field optOut else in out none yes no deleted unsubscribed ' +
    'consentAt format timezone include protect when type path delimiter encoding sheet records ' +
    'host port users header replaces publicUrl level cursor param size'
  ).split(' '),
);

/** Returns a value without any secret. `isOpen`: nothing in it can be one. */
function shown(value: unknown, key: string, isOpen: boolean): unknown {
  const stated = inFile(key, value);
  if (Array.isArray(stated)) return stated.map((one) => shown(one, key, isOpen));
  if (typeof stated === 'object' && stated !== null) {
    const entries = Object.entries(stated).filter(([, one]) => one !== undefined);
    return Object.fromEntries(
      entries.map(([name, one]) => [
        titleOf(name, one),
        // The names of headers are the user's, so they say nothing about what is in them.
        key === 'headers' ? '(set)' : shown(one, name, isOpen),
      ]),
    );
  }
  if (typeof stated === 'number' && durations.test(key)) return lasting(stated);
  if (typeof stated !== 'string') return stated;
  if (isOpen || openKeys.has(key) || stated !== value) return stated;
  const host = URL.parse(stated)?.host ?? '';
  return host === '' ? '(set)' : `${host} (the rest is not shown)`;
}

/** Returns the name without its unit, because durations are shown in words. */
function titleOf(name: string, value: unknown): string {
  return typeof value === 'number' ? name.replace(durations, '') : name;
}
