/** A mistake in the configuration: where, what is wrong, how to mend it. It never holds a value. */
import { Invalid } from '../domain/errors.ts';

export type Path = readonly (string | number)[];

/** Both count from 1. */
export interface ConfigPlace {
  line: number;
  col: number;
}

export interface Mistake {
  /** Empty when it concerns the file rather than a value in it. */
  path: Path;
  place: ConfigPlace;
  wrong: string;
  mend: string;
}

/** All mistakes in the order of the file, a line each: `file:line:col  path  wrong  → mend`. */
export function invalidFile(file: string, mistakes: readonly Mistake[]): Invalid {
  const sorted = mistakes.toSorted(
    (a, b) => a.place.line - b.place.line || a.place.col - b.place.col,
  );
  const lines = sorted.map(({ path, place, wrong, mend }) => {
    const what = `${wrong}  → ${mend}`;
    const where = `${file}:${place.line}:${place.col}`;
    return (path.length > 0 ? [where, spell(path), what] : [where, what]).join('  ');
  });
  return new Invalid([...new Set(lines)].join('\n'));
}

/** `contacts.channels[1].id`; a key that would garble the line is quoted. */
function spell(path: Path): string {
  const steps = path.map((step) => {
    if (typeof step === 'number') return `[${step}]`;
    return /^[\w-]{1,60}$/.test(step) ? `.${step}` : `.${JSON.stringify(step.slice(0, 60))}`;
  });
  return steps.join('').replace(/^\./, '');
}

/** Whether `inner` is `outer` or lies within it. */
export function within(outer: Path, inner: Path): boolean {
  return outer.every((step, index) => inner[index] === step);
}
