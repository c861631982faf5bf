// The zone in which times are shown: the reader's, or UTC.

import { remembered, useStored } from './stored';

export const ZONES = ['local', 'utc'] as const;
export type Zone = (typeof ZONES)[number];

export const useZone = () => useStored<Zone>('zone', ZONES, 'local');

export const zone = (): Zone => (remembered('zone') === 'utc' ? 'utc' : 'local');
