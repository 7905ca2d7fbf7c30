/** Shows the templates of a mirror, and how the platform differs from the source. */
import { stringify } from 'yaml';
import { escapeHtml } from '../../domain/values/html-text.ts';
import { Invalid } from '../../domain/errors.ts';
import type { Key } from '../../domain/record.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import {
  decodeTemplate,
  differing,
  observeTemplate,
  type RecordedTemplate,
} from '../../records/template/template-state.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { html, type Html, prose, sectionsHtml } from '../../views/render/html.ts';
import { names, type Text } from '../../views/sections.ts';
import { tellRun } from '../../views/status/run-history.ts';
import { readerOf } from '../view/console-text.ts';
import { linkTo, type Page, type PageContent, type PageRequest } from '../view/page.ts';
import { askForm, notOperator, pageLinks } from '../view/form.ts';

const perPage = 100;
const runsSearched = 20;
const missing = 'missing on the platform';

/** The list of the templates. */
export const templatesPage: Page = {
  path: 'templates',
  nav: 'Templates',
  show: (request) => templateList(request, false),
  ask: async (request) =>
    request.user.role === 'operator' ? templateList(request, true) : notOperator,
};

async function templateList(request: PageRequest, isAsked: boolean): Promise<PageContent> {
  const { after = '', show } = request.query;
  const isSome = show === 'differs';
  const there = isAsked ? await readPlatform(request) : undefined;
  const { rows, last, total, read } = await request.mirror.read(request.user, ({ snapshot }) => {
    if (!snapshot) return { rows: [], last: undefined, total: 0, read: '' };
    const problems = Map.groupBy(problemsIn(snapshot), ({ key }) => key);
    const { recorded } = snapshot;
    // Whatever differs is a problem, too.
    const those = isSome
      ? [...problems.keys()].flatMap((key) => recorded.get('template', key) ?? [])
      : recorded.next('template', after, perPage);
    const found = those.map((row): Text[] => {
      const { key } = row;
      const { value } = decodeTemplate.recorded(row);
      const { source, platform: then } = sidesOf(value);
      const now = there?.get(value.shown.id);
      const id = there && !now ? undefined : row.id;
      const platform = now ?? then;
      const differs = differing(source, platform);
      const text = id === undefined ? missing : `differs in ${differs.join(', ')}`;
      const isSame = differs.length === 0 && id !== undefined;
      const state = isSame ? 'as the source states it' : ({ tone: 'bad', text } as const);
      const [problem] = problems.get(key) ?? [];
      return [
        { page: pathOf({ id: key }), text: platform.name ?? source.name ?? key },
        problem && id !== undefined ? [state, `: ${problem.reason}`] : state,
      ];
    });
    const total = recorded.count('template');
    return { rows: found, last: those.at(-1)?.key, total, read: readWords(snapshot) };
  });
  const section = {
    table: { columns: ['Template', 'On the platform'], rows },
    none: isSome ? 'No template differs.' : 'No template is mirrored.',
  };
  const links = [
    after !== '' && (['First', { after: '' }] as const),
    rows.length >= perPage && !isSome && (['Next', { after: last }] as const),
  ];
  const shown = `${withCommas(rows.length)} of ${counted(total, 'template')}`;
  const other = isSome ? ['All templates', ''] : ['Those that differ', 'differs'];
  const body = html`${pageLinks(request, [[other[0] ?? '', { show: other[1], after: '' }]])}
    <p class="quiet">${isAsked && 'The platform as it is now.'} ${prose(read)}</p>
    ${askFor(request, 'templates')} ${sectionsHtml([section], readerOf(request))}
    ${rows.length === 0 ? '' : pageLinks(request, links, shown)}`;
  return { title: 'Templates', body };
}

/** Returns the form that reads the platform for a page; nothing for a viewer. */
function askFor(request: PageRequest, path: string): Html | '' {
  if (request.user.role !== 'operator') return '';
  return askForm(request, { path, label: 'Read the platform now' });
}

/** Reads the templates of the platform by id. */
async function readPlatform({ mirror }: PageRequest) {
  return mirror.ask(async ({ templates }, signal) => {
    const found = new Map<string, RecordedTemplate['shown']['fields']>();
    for await (const template of templates.all({}, { signal })) {
      const { id, value } = decodeTemplate.observed(observeTemplate(template));
      found.set(id, value.fields);
    }
    return found;
  });
}

/** Says when runs last read each side completely. */
function readWords({ runs }: Snapshot): string {
  const all = ['full', 'fast']
    .flatMap((mode) => runs.newest(runsSearched, { mode }))
    .toSorted((a, b) => b.startedAt - a.startedAt)
    .map((run) => tellRun(run, () => false));
  const [platform, source] = (['platform', 'source'] as const).map(
    (side) => all.find((run) => run.only !== 'contacts' && run.certificate?.[side])?.startedAt,
  );
  if (platform === undefined || source === undefined) return 'No run has read both sides yet.';
  return `The platform as of ${platform}, the source as of ${source}.`;
}

/** One template, with both sides. */
export const templatePage: Page = {
  path: 'templates/:id',
  show: (request) => templateContent(request, false),
  ask: async (request) =>
    request.user.role === 'operator' ? templateContent(request, true) : notOperator,
};

async function templateContent(request: PageRequest, isAsked: boolean): Promise<PageContent> {
  const { value, problems, id: known } = await templateOf(request);
  const { source, platform } = sidesOf(value);
  // It has no such template any more if none is found.
  const read = isAsked ? (await readPlatform(request)).get(value.shown.id) : undefined;
  const isMissing = isAsked ? !read : known === undefined;
  const shown = isMissing ? {} : (read ?? platform);
  const differs = new Set(isMissing ? [] : differing(source, shown));
  const fields = [...new Set([...differs, ...Object.keys(source), ...Object.keys(shown)])].filter(
    (name) => name !== 'name' || differs.has(name),
  );
  const sides = fields.map((name): Text[] => [
    differs.has(name) ? { tone: 'bad', text: `${name} (differs)` } : name,
    { verbatim: textOf(Reflect.get(source, name)) },
    { verbatim: textOf(Reflect.get(shown, name)) },
  ]);
  const table = { columns: [names('Field'), 'Source', 'Platform'], rows: sides };
  const preview = (of: 'source' | 'platform', label: string): Html =>
    html`<section>
      <h2>${label}</h2>
      <iframe
        title="${label}"
        sandbox=""
        src="${linkTo(request, `${pathOf(request)}/preview?of=${of}`)}"
      ></iframe>
    </section>`;
  const last = value.differs ? 'as the last complete run read both' : 'as it was last sent';
  const there = isAsked ? 'The platform as it is now.' : 'The platform as it was then.';
  const when = isMissing ? `It is ${missing}.` : there;
  const body = html`${problems.map(
      ({ reason, fix }) =>
        html`<p class="flash bad">${reason}</p>
          <p class="fix">${prose(fix)}</p>`,
    )}
    <p class="quiet">The source ${last}. ${when}</p>
    ${askFor(request, pathOf(request))} ${sectionsHtml([{ table }], readerOf(request))}
    <div class="pair">
      ${preview('source', 'Preview of the source')}
      ${isMissing ? '' : preview('platform', 'Preview of the platform')}
    </div>`;
  return { title: platform.name ?? request.id, body };
}

/** Returns both sides as they were last read: a template that differs is not always written. */
function sidesOf({ sent, shown, differs }: RecordedTemplate) {
  return differs ?? { source: sent, platform: shown.fields };
}

function pathOf({ id }: { id: string }): string {
  return `templates/${encodeURIComponent(id)}`;
}

/** The content of a template as a page of its own, for a frame without scripts. */
export const templatePreview: Page = {
  path: 'templates/:id/preview',
  async show(request) {
    const { value } = await templateOf(request);
    const { source, platform } = sidesOf(value);
    const { content = [] } = request.query['of'] === 'platform' ? platform : source;
    return {
      type: 'text/html',
      text: `<!doctype html><meta charset="utf-8"><title>Preview</title>${content.map(block).join('\n')}`,
      policy:
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'",
    };
  },
};

async function templateOf(request: PageRequest) {
  const found = await request.mirror.read(request.user, ({ snapshot }) => {
    const row = snapshot?.recorded.get('template', request.id);
    if (!snapshot || !row) return undefined;
    const problems = problemsIn(snapshot).filter(({ key }) => key === request.id);
    return { value: decodeTemplate.recorded(row).value, problems, id: row.id };
  });
  if (!found) throw new Invalid(`no template ${request.id} is recorded`, { fix: 'go back' });
  return found;
}

function problemsIn({ problems, ranges }: Snapshot): { key: Key; reason: string; fix: string }[] {
  return [...ranges.ofProblems('template')].flatMap((range) => problems.counted.list(range));
}

function textOf(value: unknown): string {
  if (value === undefined) return '–';
  return typeof value === 'string' ? value : stringify(value);
}

/**
 * Draws one element of the content. The platform does not say what elements there are, so anything
 * but the usual ones is shown as it is stored.
 */
function block(element: unknown): string {
  const of = (name: string): unknown =>
    typeof element === 'object' && element !== null ? Reflect.get(element, name) : undefined;
  const text = of('text');
  const items = of('items');
  if (typeof of('html') === 'string') return String(of('html'));
  if (of('type') === 'heading' && typeof text === 'string') return `<h1>${escapeHtml(text)}</h1>`;
  if (typeof text === 'string') return `<p>${escapeHtml(text).replaceAll('\n', '<br>')}</p>`;
  if (of('type') === 'button') return `<p><button>${escapeHtml(String(of('label')))}</button></p>`;
  if (of('type') === 'image')
    return `<p>[image: ${escapeHtml(String(of('alt') ?? of('url')))}]</p>`;
  if (Array.isArray(items)) {
    return `<ul>${items.map((item) => `<li>${escapeHtml(String(item))}</li>`).join('')}</ul>`;
  }
  return `<pre>${escapeHtml(JSON.stringify(element, null, 2) ?? '')}</pre>`;
}
