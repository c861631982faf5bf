// Keys are checked by the compiler: an area added here is all it takes.

import 'i18next';
import type commands from './en/commands.json';
import type common from './en/common.json';
import type create from './en/create.json';
import type files from './en/files.json';
import type lifecycle from './en/lifecycle.json';
import type locks from './en/locks.json';
import type overview from './en/overview.json';
import type policy from './en/policy.json';
import type runs from './en/runs.json';
import type sandboxes from './en/sandboxes.json';
import type signin from './en/signin.json';
import type terminal from './en/terminal.json';
import type timeline from './en/timeline.json';
import type tokens from './en/tokens.json';

declare module 'i18next' {
  interface CustomTypeOptions {
    defaultNS: 'common';
    resources: {
      commands: typeof commands;
      common: typeof common;
      create: typeof create;
      files: typeof files;
      lifecycle: typeof lifecycle;
      locks: typeof locks;
      overview: typeof overview;
      policy: typeof policy;
      runs: typeof runs;
      sandboxes: typeof sandboxes;
      signin: typeof signin;
      terminal: typeof terminal;
      timeline: typeof timeline;
      tokens: typeof tokens;
    };
  }
}
