/** Shows texts that name commands: in the console, a link stands where a command would be typed. */
import { html, type Html, linkTo, type PageRequest, prose } from './page.ts';

/** The page that does what a command does, and what it is called in a sentence. */
const places: Readonly<Record<string, readonly [path: string, text: string]>> = {
  approve: ['approvals', 'the page Approvals'],
  reject: ['approvals', 'the page Approvals'],
  plan: ['approvals', 'the page Approvals'],
  problems: ['problems', 'the page Problems'],
  retry: ['problems', '“Try again”'],
  resolve: ['people', '“Resolve the conflict” on the page of the person'],
  explain: ['people', 'the page of the person'],
  runs: ['runs', 'the page Runs'],
  sync: ['', '“Run now” on the overview'],
  resume: ['', '“End the pause” on the overview'],
  status: ['', 'the overview'],
  check: ['configuration', 'the page Configuration'],
  audit: ['audit', 'the page Audit log'],
};

const aCommand = /(?:(\brun) )?`(?:crm-mirror )([a-z-]+)[^`]*`/;

/** Returns a text as `prose` does, with links for the commands that the console has. */
export function consoleText(request: Pick<PageRequest, 'mirror'>, text: string): Html {
  const parts: (Html | string)[] = [];
  let rest = text;
  for (let found = aCommand.exec(rest); found; found = aCommand.exec(rest)) {
    const [whole, verb, name = ''] = found;
    const place = places[name];
    parts.push(prose(rest.slice(0, found.index)));
    if (place) {
      const [path, words] = place;
      parts.push(html`${verb ? 'use ' : ''}<a href="${linkTo(request, path)}">${words}</a>`);
    } else parts.push(prose(whole));
    rest = rest.slice(found.index + whole.length);
  }
  return html`${parts}${prose(rest)}`;
}

/** Returns a text without the hashes of plans, which only a command line needs. */
export function withoutPlans(text: string): string {
  return text.replaceAll(/,? under the plan [0-9a-f]+/g, '');
}
