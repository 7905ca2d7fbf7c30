/** A mistake in the configuration: its place, what is wrong, and the fix. It quotes no value. */
import { Invalid, type Problem, renderProblem } from '../domain/errors.ts';

export type Path = readonly (string | number)[];

/** A position in the file. Lines and columns count from 1. */
export interface ConfigPlace {
  /** The file, if it is not the one that was asked for but the defaults beside it. */
  file?: string;
  line: number;
  col: number;
}

export interface Mistake {
  /** The path of the value; empty if the mistake concerns the whole file. */
  path: Path;
  place: ConfigPlace;
  wrong: string;
  mend: string;
}

/** Returns the error for all mistakes: in file order, those in the defaults last, each once. */
export function invalidFile(file: string, mistakes: readonly Mistake[]): Invalid {
  const sorted = mistakes.toSorted(
    ({ place: a }, { place: b }) =>
      Number(a.file !== undefined) - Number(b.file !== undefined) ||
      a.line - b.line ||
      a.col - b.col,
  );
  const problems = sorted.map(({ path, place, wrong, mend }): Problem => {
    const where = `${place.file ?? file}:${place.line}:${place.col}`;
    // The path is written like contacts.channels[1].id; a key that would garble the line is quoted.
    const steps = path.map((step) => {
      if (typeof step === 'number') return `[${step}]`;
      return /^[\w-]{1,60}$/.test(step) ? `.${step}` : `.${JSON.stringify(step.slice(0, 60))}`;
    });
    const at = path.length > 0 ? `${where}  ${steps.join('').replace(/^\./, '')}` : where;
    return { code: 'invalid', place: at, reason: wrong, fix: mend };
  });
  return new Invalid([...new Map(problems.map((one) => [renderProblem(one), one])).values()]);
}

/** Returns whether `inner` equals `outer` or is inside it. */
export function within(outer: Path, inner: Path): boolean {
  return outer.every((step, index) => inner[index] === step);
}
