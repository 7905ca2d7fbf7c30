/** The style of the page: quiet, in the reader's own fonts, in light and dark. */
export const style = `
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b6474; --paper: #fbfbf9;
  --line: #e3e4e0; --card: #fff; --link: #2158c7 }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ee; --soft: #9aa3b2; --paper: #14171d;
  --line: #2b303a; --card: #1a1e26; --link: #8ab0ff } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2.5rem 1.25rem 5rem; max-width: 60rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.6 system-ui, sans-serif }
h1 { margin: 0 0 .5rem; font-size: 1.8rem; letter-spacing: -.02em }
h2 { margin: 2.5rem 0 .75rem; font-size: 1.15rem }
h3 { margin: 1.25rem 0 .35rem; color: var(--soft); font-size: .8rem; font-weight: 600;
  letter-spacing: .06em; text-transform: uppercase }
header p { max-width: 46rem; color: var(--soft) }
a { color: var(--link) }
code { font: .9em ui-monospace, monospace }
details { margin: .5rem 0; padding: 0 1rem; border: 1px solid var(--line); border-radius: .6rem;
  background: var(--card) }
details[open] { padding-bottom: 1rem }
summary { display: flex; flex-wrap: wrap; gap: .75rem; align-items: baseline; padding: .6rem 0;
  cursor: pointer; list-style: none }
summary > span:last-child:not(:first-child) { margin-left: auto; color: var(--soft) }
summary > span:first-child { width: 4.2rem; padding: .1rem 0; border-radius: .3rem; color: #fff;
  font: 600 .72rem/1.5 ui-monospace, monospace; text-align: center; text-transform: uppercase }
.get { background: #2f6fb2 } .post { background: #2c7a4b }
.put { background: #9a6700 } .delete { background: #b3372f }
table { width: 100%; border-collapse: collapse; font-size: .92rem }
td { padding: .35rem .75rem .35rem 0; border-top: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere }
td b { font-size: .8em; font-weight: 600 } td:first-child { white-space: nowrap }
small { color: var(--soft) }`.replaceAll(/\s+/g, ' ');
