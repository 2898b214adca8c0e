"""Names of routes: which show that a route is not a page, and which only seem to."""

from __future__ import annotations

import pytest

from sitemap_middleware.listing.unsafe_routes import operations_reason, unsafe_reason

ACTIONS = """
/logout /sign-out /users/log_off /cache/clear /Unsubscribe /cron/nightly /newsletter/confirm /gc-cleanup
/delete /users/deleteAll /user_delete /cleanup /vacuum /prune /reindex /rebuild /toggle /toggle-theme /ack
/retry /resend /resend-email /pay /checkout /cart/add /add-to-cart /vote /like /follow /unfollow /generate
/upload /restore /test /debug /admin/run-jobs /run /trigger /sync /clearCache /clear-cache /clearcache
/sendMail /send-mail /tasks/run /task/nightly /job/nightly /signOut /SignOut /logOut /auth/logout/
/accounts/log-out /session/logoff /import /export /switch /backup/create /db/backup /server/start /db-cleanup
/admin/clean-up /purge_cache /reset-password /payments/webhooks /stripe-webhook /reload /gc /gc_run
/delete-all-users /remove/all /refresh /refresh_token /logout-all /sign_out_everywhere /backup /stripe-webhook
/my-logout
"""

VERBS = """
/terminar-sesion /سجل-الخروج /साइन-आउट /empty-trash /trash/empty /push-all /notify-admins /notify-subscribers /tweet
/post-to-twitter /cancel-subscription /start-trial /enable-maintenance /run-migrations /process-orders
/process-payments /process_emails /fetch-emails /pull /create-tables /setup-db /populate /bust-cache /block-user
/promote-user /make-admin /become-admin /login-as /verify-email /change-password /regenerate-keys /halt /abort /quit
/quit-server /exit-app /suspend /hibernate /kick
/cart/empty /close-account /order/place /place-order /newsletter/optout /email-all /notify-all
/notifications/mark-read /mark-all-read /init-db /db/seed /rotate-keys /deploy /git-pull /process-queue /scan
/scrape /cache/warm /poweroff /door/open /lights/off /uitloggen /salir /wyloguj /warenkorb/leeren /panier/vider
/carrito/vaciar /donate /redeem /claim /refund /charge /withdraw /transfer /payout /accept-terms /ban /broadcast
/redeploy /self-update /self-destruct /nuke /forget-me /expire-sessions /tokens/new /api-key/new /sms
/release-lock /compute /recalculate /load-data /crash /panic /выход /退出 /ログアウト /удалить /删除 /löschen
/verwijderen /jobs/run-all /send-newsletter /cart/clear /abmelden /Abmelden /auth/ausloggen /konto/löschen
/konto-loeschen /konto/entfernen /déconnexion /se-deconnecter /compte/supprimer /supprimer-compte /panier-vider
/vider-panier /cerrar-sesión /cuenta/eliminar /eliminar-cuenta /carrinho/esvaziar /sair /esci /carrello/svuota
/winkelwagen/legen /account-verwijderen /koszyk/wyczyść /usuń /usun-konto /konto/usuń /logga-ut /radera-konto
/log-ud /slet-konto /logg-ut /kirjaudu-ulos /poista /odhlásit /smazat /košík/vyprázdnit /çıkış /cikis-yap
/hesap-sil /sepet/boşalt /выйти /корзина/очистить /удалить-аккаунт /вийти /видалити /кошик/очистити /カートを空にする
/アカウント削除 /配信停止 /清空购物车 /登出 /로그아웃 /계정-삭제 /장바구니/비우기 /تسجيل-الخروج /حذف-الحساب /लॉगआउट /हटाएं /bezahlen /bestellen
/commander /payer /pagar /pagare /betalen /zapłać /betala /заказать /оплатить /購入する /支付 /결제하기 /account/close
/accept /me/forget /team/leave /kitchen/off /power-off /turn-off /turn_on_lights /switch-off /lock-door
/gate/open /garage/close /alarm/disarm /keys/rotate /rotateKeys /new-token /api-keys/generate /lock/release
/email-users /message-all /alert-everyone /sms-all /queue/process /drain-queue /warm-cache /caches/warm /seed
/seed-db /init_db /database/init /dump-db /build-index /sync-all /run-all /process-all /app/update /update-app
/server/reset /self-upgrade /git/pull /git_push /mark-as-read /messages/mark-all-as-read /notifications/read
/donate-now /order-now /refund-order /claim-now /buy/now /cancel-order /orders/cancel /subscription/cancel
/opt-out /optOut /forgetMe /deployNow /deploy-all /rescan /crawl /db-seed /account/delete /accounts/notify
/unpublish /posts/unpublish /archive-old /close-month /renew-cert /wake /device/wake /dispatch /ship /checkin
/check-in /increment /counter/increment /buy /go-live /maintenance-mode /grant /demote /users/demote /lock /door/lock
/promote /escalate /tickets/escalate /freeze /settle /invoices/settle /reconcile /bump /pardon /rollover /reopen
/resync /backfill /orders/reissue /failover /dedupe /deprovision /finalize /unmute /unpin /mark-paid
/reopen-year /nudge /snooze /open /set-language /set-locale /rename /notify /unlock /importar /exporter /sincronizar /aktualisieren /ausführen /deaktivieren /activer /ativar
"""
"""Actions by kind and language: log out, delete, empty, send, pay, switch, run, change."""

MACHINES = """
/api /api/users /v1/users /v2.0/x /rest /graphql /rpc /ajax-api /ajax-api/2.0/x /openapi /swagger /webhooks
/ws /socket.io /health /healthz /livez /readyz /ping /status /metrics /version /heartbeat /up /health/live
/app/api/v1/users /x/healthz /.git /.well-known/security /_reload-hash /-/logout /-/ready /a/_b /api/healthz
/server-status
"""

PAGES = """
/ /start /jobs /updates /status-quo /exports-to-china /about /blogout /standings /important /tasks-and-goals
/jobs/berlin /how-to-delete-your-account /help/reset-password /docs/install /docs/api /docs/start /add-ons
/addons /run-a-marathon /test-drive /like-new /share-prices /download /downloads /print /login /sign-in
/signin /register /signup /install /subscribe /start-here /open-source /importance /exporters /testing /tests
/testimonials /payments /paypal /voters /likes /followers /switchboard /upgrades /upgrade /create
/products/new /search /news /v2 /apidocs /rest-rooms /restaurants /wsop /pingpong /upcoming /versions
/version/2024 /status/incidents /healthcare /health-insurance /metrics-that-matter /debugging /generators
/cancel-culture /drop-shipping /clear-skies /stop-smoking /send-flowers /import-duties /export-guide
/sync-or-swim /enabled /resettlement /killer-whales /backups /backup-guide /blog/clear /news/test /help/cancel
/guides/export /flush-doors /reloading /removed-films /deleted-scenes /cleaning /prunes /recallables /tasks
/task /job /callback /a /test-results /publish-with-us /publishers /runners /enable-js /pay-gap
/checkout-our-offers /confirmations /café
"""

REAL_PAGES = """
/order-process /service /kickstart /start-up /stop-motion /exit-interview /change-management /block-party /posts
/post /post-production /user-groups /server-hosting /ticket-shop /tickets /email-setup /quick-start /process
/contact /pricing /kontakt /ueber-uns /prix /precios /docs/deploy /help/refund /blog/scan /guides/transfer
/products /services /team /careers /faq /terms /privacy /imprint /impressum /datenschutz /agb /versand
/lieferung /zahlung /zahlungsarten /warenkorb /konto /anmelden /registrieren /suche /hilfe /presse /aktuelles
/neuigkeiten /veranstaltungen /öffnungszeiten /anfahrt /über-uns /leistungen /preise /referenzen /galerie
/produkte /standorte /karriere /stellenangebote /spenden /mitglied-werden /newsletter /wissen /ratgeber
/a-propos /à-propos /contactez-nous /mentions-legales /mentions-légales /actualites /actualités /tarifs
/boutique /panier /compte /connexion /inscription /recherche /aide /livraison /paiement /conditions-generales
/equipe /équipe /carrieres /nos-services /commandes /dons /ouverture /acerca-de /sobre-nosotros /contacto
/noticias /tienda /carrito /cuenta /iniciar-sesion /registro /buscar /ayuda /envios /pagos /aviso-legal
/politica-de-privacidad /equipo /trabaja-con-nosotros /servicios /pedidos /salida /salidas /eliminatorias /sobre
/sobre-nós /contato /loja /carrinho /entrar /cadastro /ajuda /quem-somos /preços /pagamento /pedidos/historico
/chi-siamo /contatti /notizie /negozio /carrello /prezzi /servizi /lavora-con-noi /spedizione /over-ons
/contacteer-ons /nieuws /winkel /winkelwagen /prijzen /diensten /vacatures /bestelling /betaalmethoden /o-nas
/aktualności /sklep /koszyk /cennik /uslugi /usługi /praca /platnosci /dostawa /om-oss /nyheter /butik /varukorg
/priser /tjänster /jobba-hos-oss /leverans /om-os /nyheder /kurv /handlekurv /nettbutikk /yhteystiedot
/tietoa-meista /uutiset /hinnat /ostoskori /toimitus /o-nás /novinky /obchod /košík /ceník /služby /doprava
/hakkımızda /iletişim /haberler /ürünler /fiyatlar /sepet /о-нас /контакты /новости /цены /услуги /корзина
/доставка /вакансии /про-нас /новини /ціни /послуги /кошик /会社概要 /お問い合わせ /料金 /ニュース /採用情報 /カート /よくある質問 /関於我們
/关于我们 /联系我们 /价格 /新闻 /购物车 /招聘 /如何删除账户 /회사소개 /문의하기 /가격 /뉴스 /장바구니 /채용 /من-نحن /اتصل-بنا /الأسعار /أخبار
/हमारे-बारे-में /संपर्क /समाचार /मूल्य /process /our-process /build /open-data /open-day /open-doors
/open-positions /open-house /jobs/open /issues/open /archive /archives /index /place /places /apply /apply-now
/on-site /on-demand /offers /office /offline /online /read /reading /mark /marketing /market /load /loading
/key-facts /keys /tokens /token /new /new-arrivals /whats-new /sale /shop /shop/new /email /mail /message
/messages /messages/all /users/all /users/email /all-messages /notifications /alerts /sms-marketing /claims
/refunds /refund-policy /returns /transfers /transfer-news /charges /charging-stations /withdrawals /donations
/donors /orders /orders/all /my-orders /account/orders /order-history /deployment /deployments /scanner
/scanners /scraping /crawler /broadcasts /banking /banks /bands /crash-course /panic-at-the-disco
/compute-engine /computers /solutions/compute /features/deploy /platform/scan /use-cases/notify
/integrations/sms /forget-me-not /forgotten-books /unlocking-potential /lights /lights-and-lamps /doors
/door-handles /windows /gates /seeds /seed-catalogue /warm-clothes /warmth /self-help /self-service
/self-storage /app /apps /git /git-basics /server /servers /updates/2024 /scan/results /account
/account/settings /profile /settings /leave /leave-of-absence /close /closed /close-up /closing-times
/empty-nest /on /off /power /power-tools /powerhouse /release-notes /releases /releases/latest /issue /issues
/take-away /renew /renewables /locksmith /accepted-papers /acceptance /terms-of-service /cookies
/cookie-policy /legal /security /sitemap /feed /events /wie-bestellen /comment-supprimer-un-compte
/como-eliminar-cuenta /hilfe/abmelden /aide/supprimer /ayuda/eliminar /blog/löschen /blog/删除
/как-удалить-аккаунт /exit /exits /exit-strategy /team/close-up /data /data-science /email-signature /mail-order
/send-off /notify-policy /deploying /opt-in
"""
"""Pages of ordinary sites in many languages, and titles that hold a verb."""

ACTION_VIEWS = """
delete_user logout LogoutView auth.logout run_jobs send_mail gc_cleanup users.delete Admin.purge clear_cache
add_to_cart create_user sync_now delete_view rotate_keys email_all initDb
"""

PAGE_VIEWS = """
start start_page home index blog.start jobs.index site.about view run test export updates create_page Home.get
import_guide testimonials addons how_to_delete static view3 _
"""


HEALTH_CHECKS = """
/health /healthz /livez /readyz /ping /metrics /version /heartbeat /up /status /alive /ready /stats.json
/health/live /health/ready /health/db /api/health /api/v1/healthz /_health /__health__ /_ah/health /-/ready /x/healthz
/misc/ping /app/health /server/metrics /en/app/health /health.html /healthcheck.php /Health /HEALTHZ/ /health-check/ /actuator/info /server-status /.health /internal/ping /shutdown /server/reboot
"""

NO_HEALTH_CHECKS = """
/topics/health /category/health /insurance/health /sports/up /app /products/metrics
/ /health/nutrition /health-insurance /healthcare /status/incidents /version/2024 /pingpong /blog/health /about
/metrics-that-matter /api /v1/users /logout /.well-known/security /ok /docs/ready /upcoming
"""


@pytest.mark.parametrize("path", HEALTH_CHECKS.split())
def test_a_health_check_needs_the_option_include(path: str) -> None:
    assert "health check or of operations" in str(operations_reason(path, "view"))
    assert unsafe_reason(path, "view") is not None


@pytest.mark.parametrize("path", NO_HEALTH_CHECKS.split())
def test_other_paths_do_not_need_the_option_include(path: str) -> None:
    assert operations_reason(path, "view") is None


@pytest.mark.parametrize("view", ["healthz", "ops.health_check", "HealthCheck", "livenessProbe", "readyz"])
def test_a_view_named_like_a_health_check_needs_the_option_include(view: str) -> None:
    assert "is the name of a health check" in str(operations_reason("/hc", view))
    assert operations_reason("/hc", f"{view}_guide") is None


@pytest.mark.parametrize("path", ACTIONS.split() + VERBS.split())
def test_action_path_is_unsafe_and_the_reason_names_the_word(path: str) -> None:
    reason = unsafe_reason(path, "view")
    assert reason is not None
    assert reason.endswith("is the name of an action")
    assert reason.split("'")[1].lower() in path.lower()


@pytest.mark.parametrize("path", MACHINES.split())
def test_api_path_is_not_a_page(path: str) -> None:
    reason = unsafe_reason(path, "view")
    assert reason is not None
    assert reason.split("'")[1] in path.split("/")


ERRORS = "/500 /404 /error /errors/500 /server-error /sentry-debug/ /debug-sentry /sentry/error /raise-exception /boom /simulate-error /test-500"
FLOW_ENDS = "/accounts/login_link_sent/ /comments/posted/ /contact/sent/ /signup/closed/ /accounts/inactive/"
FLOW_ENDS += " /order/complete /newsletter/confirmed /register/check-email /thanks /thank-you /contact/thanks /unsubscribed /login-failed /session-expired /payment/cancelled"
NO_ENDS = "/closed /sent /complete /blog/thanks /thanksgiving /promotions /settlements /freezers /year /blog/closed /news/we-are-closed /2024/500-days /docs/500 /600"


@pytest.mark.parametrize("path", ERRORS.split())
def test_path_of_an_error_waits_for_a_visit(path: str) -> None:
    assert str(unsafe_reason(path, "view")).endswith("is the name of an error")


@pytest.mark.parametrize("path", FLOW_ENDS.split())
def test_end_of_a_flow_waits_for_a_visit(path: str) -> None:
    assert str(unsafe_reason(path, "view")).endswith("is the end of a flow")


@pytest.mark.parametrize("path", NO_ENDS.split())
def test_titles_with_such_words_are_pages(path: str) -> None:
    assert unsafe_reason(path, "view") is None


@pytest.mark.parametrize("path", PAGES.split() + REAL_PAGES.split())
def test_a_path_that_only_holds_such_a_word_may_be_a_page(path: str) -> None:
    assert unsafe_reason(path, "view") is None


@pytest.mark.parametrize("view", ACTION_VIEWS.split())
def test_view_named_like_an_action_is_not_a_page(view: str) -> None:
    assert "is the name of an action" in str(unsafe_reason("/page", view))


@pytest.mark.parametrize("view", PAGE_VIEWS.split())
def test_a_view_that_only_holds_such_a_word_may_be_a_page(view: str) -> None:
    assert unsafe_reason("/page", view) is None


@pytest.mark.parametrize(
    ("path", "endpoint", "named"),
    [
        ("/user_delete", "", "delete"),
        ("/users/old/delete-them-all-now", "", "delete"),
        ("/log-out-now", "", "log-out"),
        ("/déconnexion", "", "déconnexion"),
        ("/cleardb", "", "clear"),
        ("/import/all", "", "import"),
        ("/~/logout", "", "logout"),
        ("/how-to/delete", "", "delete"),
        ("/x", "blog.log_out", "log_out"),
        ("/x", "deleteUser", "delete"),
        ("/x", "app.import_old_posts_view", "import"),
        *(("/x", f"user_delete_{last}", "delete") for last in ("view", "handler", "endpoint", "route", "controller")),
        ("/what-we-never-delete", "", None),
        ("/clearx", "", None),
        ("/blog/how-to/delete", "", None),
        *(("/x", endpoint, None) for endpoint in ("view", "handler", "endpoint", "route", "controller", "api", "get")),
    ],
)
def test_the_action_is_named(path: str, endpoint: str, named: str | None) -> None:
    assert unsafe_reason(path, endpoint) == (named and f"{named!r} is the name of an action")
