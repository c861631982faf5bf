import { Suspense, useRef, useState } from 'react';
import { CircleUser, Keyboard, LogOut, Search } from 'lucide-react';
import { useTranslation } from 'react-i18next';
import { Link, NavLink, Outlet, useNavigation } from 'react-router';
import { useSession } from '@/api/session';
import { AREAS } from '@/areas';
import { useHotkeys } from '@/lib/hotkeys';
import { cx } from '@/lib/cx';
import { useFormat } from '@/lib/format';
import { Button } from '@/ui/button';
import { Skeleton } from '@/ui/empty';
import { Menu, MenuItem, MenuLabel, MenuLine } from '@/ui/menu';
import { toastError, Toasts } from '@/ui/toast';
import { KeyboardHelp } from './keyboard-help';
import { Palette } from './palette';
import { LanguageMenu, ThemeMenu } from './preferences';
import { RecorderBanner, RecorderStatus } from './recorder';

const MOD = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘' : 'Ctrl ';

function UserMenu({ onKeys }: { onKeys(): void }) {
  const { t } = useTranslation();
  const { session, signOut } = useSession();
  const { moment } = useFormat();
  const role = session?.role ? t(`role.${session.role}`) : null;

  return (
    <Menu trigger={(
      <Button look="quiet" size="sm" title={t('account')} icon={<CircleUser size={16} aria-hidden />}>
        <span className="sr-only">{t('account')} </span>
        {role && <span className="max-lg:sr-only">{role}</span>}
      </Button>
    )}
    >
      {session?.name && <MenuLabel>{session.name}{role && ` · ${role}`}</MenuLabel>}
      {session?.expiresAt && <MenuLabel>{t('sessionEnds', { at: moment(session.expiresAt) })}</MenuLabel>}
      {(session?.name || session?.expiresAt) && <MenuLine />}
      <MenuItem icon={<Keyboard size={15} aria-hidden />} onSelect={onKeys}>{t('keys.title')}</MenuItem>
      <MenuItem icon={<LogOut size={15} aria-hidden />} onSelect={() => { signOut().catch(toastError); }}>
        {t('signOut')}
      </MenuItem>
    </Menu>
  );
}

function Navigation({ className, children }: { className: string; children(area: (typeof AREAS)[number]): React.ReactNode }) {
  const { t } = useTranslation();
  const { may, limited } = useSession();

  return (
    <nav aria-label={t('navigation')} className={className}>
      {AREAS.filter((a) => (!a.role || may(a.role)) && !(a.all && limited)).map(children)}
    </nav>
  );
}

/** All that stands around a page. */
export function Shell() {
  const { t } = useTranslation();
  const [palette, setPalette] = useState(false);
  const [keys, setKeys] = useState(false);
  const main = useRef<HTMLElement>(null);
  const { state } = useNavigation();
  // how the recorder does, and what is missing, is told of all sandboxes
  const { limited } = useSession();

  useHotkeys({
    '?': () => setKeys(true),
    'mod+k': () => setPalette(true),
  });

  return (
    <div className="flex h-dvh flex-col">
      <button type="button" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-bg focus:p-2"
        onClick={() => main.current?.focus()}
      >
        {t('skip')}
      </button>

      <header className="flex h-11 shrink-0 items-center gap-2 border-b bg-raised px-3">
        <Link to="/" className="flex items-center gap-2 font-semibold whitespace-nowrap text-sm md:w-39">
          <img src="icon.svg" alt="" width="20" height="20" />
          <span className="max-md:sr-only">sandbox-gateway</span>
        </Link>
        <Button size="sm" className="min-w-0 justify-start text-dim md:w-64" onClick={() => setPalette(true)}
          title={t('palette.open')} icon={<Search size={14} aria-hidden />}
        >
          <span className="flex-1 truncate text-left max-md:sr-only">{t('palette.open')}</span>
          <kbd className="text-2xs max-md:hidden">{MOD}K</kbd>
        </Button>
        <div className="flex-1" />
        {!limited && <RecorderStatus />}
        <LanguageMenu />
        <ThemeMenu />
        <UserMenu onKeys={() => setKeys(true)} />
      </header>

      {!limited && <RecorderBanner />}

      <div className="flex min-h-0 flex-1 max-md:flex-col-reverse">
        <Navigation className="flex shrink-0 bg-raised max-md:border-t md:w-42 md:flex-col md:gap-0.5 md:border-r md:p-2">
          {(area) => (
            <NavLink key={area.to} to={area.to} end={area.to === '/'}
              className={({ isActive }) => cx(
                'flex items-center gap-2 rounded-md text-sm max-md:flex-1 max-md:flex-col max-md:gap-0',
                'max-md:py-1.5 max-md:text-2xs md:h-8 md:px-2',
                isActive ? 'bg-tint font-medium text-accent' : 'text-dim hover:bg-sunk hover:text-text',
              )}
            >
              <area.icon size={16} aria-hidden />
              {t(area.label)}
            </NavLink>
          )}
        </Navigation>

        <main ref={main} tabIndex={-1} aria-busy={state === 'loading' || undefined}
          className="flex min-h-0 min-w-0 flex-1 flex-col overflow-y-auto outline-none"
        >
          <Suspense fallback={<Skeleton className="p-4" />}><Outlet /></Suspense>
        </main>
      </div>

      <Palette open={palette} onOpenChange={setPalette} />
      <KeyboardHelp open={keys} onOpenChange={setKeys} />
      <Toasts />
    </div>
  );
}
