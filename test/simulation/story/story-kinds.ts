/** The kinds of stories, each with its seeds: a seed of one kind tells nothing of another. */
import fc from 'fast-check';
import { canaryStory } from './canary-stories.ts';
import { restoreStory } from './restore-stories.ts';
import { story, type Story } from './story.ts';
import { undoStory } from './undo-stories.ts';

/** How the stories of a kind are drawn. */
export const storyKinds = {
  plain: story,
  undo: undoStory,
  canary: canaryStory,
  restore: restoreStory,
};
/** The names of those that are played on demand. */
export const kinds = ['undo', 'canary', 'restore'] as const;
export type StoryKind = keyof typeof storyKinds;

/** Returns the kind that a word names. */
export function kindNamed(word: string | undefined): StoryKind {
  return kinds.find((kind) => kind === word) ?? 'plain';
}

/** The story of a seed; the same for as long as these files and their library stay the same. */
export function storyOfKind(kind: StoryKind, seed: number): Story {
  const [drawn] = fc.sample(fc.noBias(storyKinds[kind]), { seed, numRuns: 1 });
  if (!drawn) throw new Error('nothing was drawn');
  return drawn;
}
